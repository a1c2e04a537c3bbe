package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pintu/internal/client"
)

// devEnvFile is what the stack on this machine writes about itself.
const devEnvFile = ".pintu/dev.env"

// target says where the API is and who asks. Address and token come from one place: one of the environment
// and one of a file could send a token to a stranger.
func (e *Env) target() (url, token string, err error) {
	url, token = e.Getenv("PINTU_URL"), e.Getenv("PINTU_TOKEN")
	switch {
	case url != "" && token != "":
		return url, token, nil
	case url != "":
		return "", "", errors.New("PINTU_URL is set and PINTU_TOKEN is not")
	case token != "":
		return "", "", errors.New("PINTU_TOKEN is set and PINTU_URL is not")
	}
	dev, path, err := e.devEnv()
	if err != nil {
		return "", "", err
	}
	if path == "" {
		return "", "", hint(errors.New("neither PINTU_URL and PINTU_TOKEN nor "+devEnvFile+" say where the API is"),
			"`pintu dev` starts a stack on this machine and writes that file")
	}
	if dev["PINTU_URL"] == "" || dev["PINTU_TOKEN"] == "" {
		return "", "", fmt.Errorf("%s lacks PINTU_URL or PINTU_TOKEN", path)
	}
	return dev["PINTU_URL"], dev["PINTU_TOKEN"], nil
}

// api makes the client that commands talk through. Repetitions are told on stderr.
func (e *Env) api() (*client.Client, error) {
	url, token, err := e.target()
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{BaseURL: url, Token: token, OnRetry: func(err error, wait time.Duration) {
		fmt.Fprintf(e.Stderr, "%s; trying again in %s\n", describe(err), wait.Round(100*time.Millisecond))
	}})
}

// devEnv reads .pintu/dev.env of the working directory or the nearest one above. path is empty when there
// is none.
func (e *Env) devEnv() (values map[string]string, path string, err error) {
	for dir := e.Dir; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, devEnvFile)
		text, err := os.ReadFile(path)
		if err == nil {
			return parseEnv(string(text)), path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, "", fmt.Errorf("read the address of the local stack: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return nil, "", nil
		}
	}
}

// parseEnv reads NAME=VALUE lines as a shell would that knows neither quotes nor spaces. Others are left
// out.
func parseEnv(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, ok := strings.Cut(line, "=")
		if ok && !strings.HasPrefix(line, "#") {
			values[name] = value
		}
	}
	return values
}
