package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"pintu/internal/access"
	"pintu/internal/aws/dynamostore"
)

func clientCommand(env *Env) *cobra.Command {
	c := group("client", "make and end the clients of a deployment (operators only)", clientCreate(env), clientRotate(env), clientRevoke(env))
	c.Long = "client commands write to the control table itself, named by PINTU_CONTROL_TABLE, with the AWS credentials of whoever runs them.\nWhen that is not set, the stack that .pintu/dev.env describes is used."
	return c
}

// operator is what client commands share: whose client, and the service that keeps it.
type operator struct {
	env    *Env
	tenant string
	format *format
}

func newOperator(env *Env, cmd *cobra.Command) *operator {
	o := &operator{env: env, format: output(cmd)}
	cmd.Flags().StringVar(&o.tenant, "tenant", "", "tenant that the client belongs to (required)")
	return o
}

func (o *operator) service(cmd *cobra.Command) (*access.Service, error) {
	if o.tenant == "" {
		return nil, usage(cmd, "--tenant is missing")
	}
	target, err := o.env.controlTable()
	if err != nil {
		return nil, err
	}
	store, err := dynamostore.Open(cmd.Context(), target)
	if err != nil {
		return nil, err
	}
	return access.New(access.Config{Store: store, Now: time.Now}), nil
}

// controlTable says where the control table is. The table and the way to it come from one place.
func (e *Env) controlTable() (dynamostore.Target, error) {
	if table := e.Getenv("PINTU_CONTROL_TABLE"); table != "" {
		return dynamostore.Target{ControlTable: table}, nil
	}
	dev, path, err := e.devEnv()
	if err != nil {
		return dynamostore.Target{}, err
	}
	if path == "" || dev["PINTU_CONTROL_TABLE"] == "" {
		return dynamostore.Target{}, hint(errors.New("PINTU_CONTROL_TABLE is not set"), "it is the output ControlTable of the deployed stack")
	}
	if dev["AWS_ENDPOINT_URL"] == "" { // never the table of a stack here with the credentials of an account there
		return dynamostore.Target{}, fmt.Errorf("%s lacks AWS_ENDPOINT_URL", path)
	}
	return dynamostore.Target{
		ControlTable: dev["PINTU_CONTROL_TABLE"], Endpoint: dev["AWS_ENDPOINT_URL"], Region: dev["AWS_REGION"],
		AccessKeyID: dev["AWS_ACCESS_KEY_ID"], SecretKey: dev["AWS_SECRET_ACCESS_KEY"],
	}, nil
}

func clientCreate(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "create CLIENT", Short: "make a client, or give one other scopes and limits, and add a token", Args: args(1, "a client name")}
	o := newOperator(env, cmd)
	scopes := cmd.Flags().StringSlice("scope", nil, "what the client may do; default: everything")
	life := cmd.Flags().Duration("expires-in", 0, "life of the token, such as 2160h; 0: for ever")
	var limits access.Limits
	cmd.Flags().IntVar(&limits.SubmitsPerMinute, "submits-per-minute", 0, "0: the default")
	cmd.Flags().IntVar(&limits.ActiveJobs, "active-jobs", 0, "0: the default")
	cmd.Flags().IntVar(&limits.UploadingJobs, "uploading-jobs", 0, "0: the default")
	cmd.Flags().Int64Var(&limits.MaxFileBytes, "max-file-bytes", 0, "0: the default")
	cmd.Flags().DurationVar(&limits.JobTime, "job-time", 0, "0: the default")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		granted := access.Scopes
		if len(*scopes) > 0 {
			granted = nil
			for _, s := range *scopes {
				granted = append(granted, access.Scope(s))
			}
		}
		return o.issue(cmd, args[0], *life, func(ctx context.Context, s *access.Service, expiresAt time.Time) (string, error) {
			return s.CreateClient(ctx, o.tenant, args[0], granted, limits, expiresAt)
		})
	}
	return cmd
}

func clientRotate(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "rotate CLIENT", Short: "add a token and let the earlier ones end after an overlap", Args: args(1, "a client name")}
	o := newOperator(env, cmd)
	life := cmd.Flags().Duration("expires-in", 0, "life of the token, such as 2160h; 0: for ever")
	overlap := cmd.Flags().Duration("overlap", 24*time.Hour, "how long earlier tokens stay valid")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *overlap < 0 {
			return usage(cmd, "--overlap cannot be negative")
		}
		return o.issue(cmd, args[0], *life, func(ctx context.Context, s *access.Service, expiresAt time.Time) (string, error) {
			return s.RotateToken(ctx, o.tenant, args[0], *overlap, expiresAt)
		})
	}
	return cmd
}

// issue makes a token and shows it, once.
func (o *operator) issue(cmd *cobra.Command, name string, life time.Duration, make func(context.Context, *access.Service, time.Time) (string, error)) error {
	if life < 0 {
		return usage(cmd, "--expires-in cannot be negative")
	}
	s, err := o.service(cmd)
	if err != nil {
		return err
	}
	var expiresAt time.Time
	var shown *time.Time
	if life > 0 {
		expiresAt = time.Now().Add(life).UTC().Truncate(time.Second)
		shown = &expiresAt
	}
	token, err := make(cmd.Context(), s, expiresAt)
	if err != nil {
		return err
	}
	fmt.Fprintln(o.env.Stderr, "this token is shown once; the system keeps only a hash of it")
	if *o.format == asText {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), token)
		return err
	}
	return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
		Tenant    string     `json:"tenant"`
		Client    string     `json:"client"`
		TokenID   string     `json:"token_id"`
		Token     string     `json:"token"`
		ExpiresAt *time.Time `json:"expires_at"`
	}{o.tenant, name, access.TokenID(token), token, shown})
}

func clientRevoke(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "revoke CLIENT", Short: "end a client with all its tokens, or one token, at once", Args: args(1, "a client name")}
	o := newOperator(env, cmd)
	token := cmd.Flags().String("token", "", "id of one token: the part between pintu_ and the second _")
	yes := cmd.Flags().Bool("yes", false, "do it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := o.service(cmd)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("client %s of tenant %s with all its tokens", args[0], o.tenant)
		if *token != "" {
			what = fmt.Sprintf("token %s of client %s of tenant %s", *token, args[0], o.tenant)
		}
		if !*yes {
			return hint(fmt.Errorf("this would end %s", what), "add --yes to do it")
		}
		if *token != "" {
			err = s.RevokeToken(cmd.Context(), o.tenant, args[0], *token)
		} else {
			err = s.Revoke(cmd.Context(), o.tenant, args[0])
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stderr, "ended", what)
		return nil
	}
	return cmd
}
