package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// devBinary is the stack that runs the system on one machine. It is a program of its own, so that this
// one stays small.
const devBinary = "pintu-dev"

func devCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:                "dev",
		Short:              "run the whole system on this machine",
		DisableFlagParsing: true, // they are the other program's
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := findDev(os.Executable, env.Getenv)
			if err != nil {
				return err
			}
			err = syscall.Exec(path, append([]string{devBinary}, args...), os.Environ())
			return fmt.Errorf("start %s: %w", path, err)
		},
	}
}

// findDev looks beside this program, links followed, and then in PATH.
func findDev(executable func() (string, error), getenv func(string) string) (string, error) {
	self, err := executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	for _, dir := range append([]string{filepath.Dir(self)}, filepath.SplitList(getenv("PATH"))...) {
		if path, err := exec.LookPath(filepath.Join(dir, devBinary)); err == nil {
			return path, nil
		}
	}
	return "", hint(errors.New(devBinary+" is neither beside this program nor in PATH"), "`make build` puts both into bin/")
}
