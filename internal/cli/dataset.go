package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"pintu/internal/client"
)

func datasetCommand(env *Env) *cobra.Command {
	return group("dataset", "define datasets", datasetPut(env), datasetGet(env))
}

func datasetPut(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "put NAME FILE",
		Short: "make a definition the newest version of a dataset",
		Long:  "put sends a JSON file: a whole dataset definition, or a bare Table Schema ({\"fields\":[…],\"primaryKey\":…}).\nWhen the newest version says the same already, nothing is made.",
		Args:  args(2, "a dataset name and a file"),
	}
	f := output(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := env.api()
		if err != nil {
			return err
		}
		definition, err := readDefinition(args[1])
		if err != nil {
			return err
		}
		d, created, err := api.PutDataset(cmd.Context(), args[0], definition, "")
		if err != nil {
			return calling(err)
		}
		sayVersion(env, d, created)
		if *f == asJSON {
			return printJSON(cmd.OutOrStdout(), d.Raw)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %d\n", d.Name, d.Version)
		return err
	}
	return cmd
}

func sayVersion(env *Env, d client.Dataset, created bool) {
	if created {
		fmt.Fprintf(env.Stderr, "made version %d of dataset %s\n", d.Version, d.Name)
	} else {
		fmt.Fprintf(env.Stderr, "dataset %s says so already, as version %d\n", d.Name, d.Version)
	}
}

// readDefinition reads the body of a PUT. A bare Table Schema is put into one.
func readDefinition(path string) (json.RawMessage, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read definition: %w", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, hint(fmt.Errorf("read definition %s: %w", path, err), "it must be a JSON object, as PUT /v1/datasets/{name} takes it")
	}
	_, bare := members["fields"]
	if _, whole := members["schema"]; bare && !whole {
		return json.Marshal(map[string]json.RawMessage{"schema": text})
	}
	return text, nil
}

func datasetGet(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "get NAME", Short: "show a dataset's definition", Args: args(1, "a dataset name")}
	f := output(cmd)
	version := cmd.Flags().Int("version", 0, "this version; 0: the newest")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *version < 0 {
			return usage(cmd, "--version cannot be negative")
		}
		api, err := env.api()
		if err != nil {
			return err
		}
		d, err := api.Dataset(cmd.Context(), args[0], *version)
		if err != nil {
			return calling(err)
		}
		return printObject(cmd.OutOrStdout(), *f, d.Raw)
	}
	return cmd
}

func recordsCommand(env *Env) *cobra.Command {
	return group("records", "read stored records", recordsList(env), recordsGet(env))
}

func recordsList(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "list DATASET", Short: "list the records of a dataset", Args: args(1, "a dataset name")}
	f, l := output(cmd), listFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := env.api()
		if err != nil {
			return err
		}
		t := table[client.Record]{
			head:  []string{"KEY", "VERSION", "VALUES"},
			cells: func(r client.Record) []any { return []any{r.Key, r.Version, string(r.Values)} },
			raw:   func(r client.Record) json.RawMessage { return r.Raw },
		}
		return show(cmd.Context(), cmd, *l, *f, "records", t, listOf(api.Records, args[0]))
	}
	return cmd
}

func recordsGet(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "get DATASET KEY", Short: "show one record; a key of several fields is a JSON array",
		Args: args(2, "a dataset name and a key")}
	f := output(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if args[1] == "" {
			return errors.New("a key cannot be empty")
		}
		api, err := env.api()
		if err != nil {
			return err
		}
		r, err := api.Record(cmd.Context(), args[0], args[1])
		if err != nil {
			return calling(err)
		}
		return printObject(cmd.OutOrStdout(), *f, r.Raw)
	}
	return cmd
}
