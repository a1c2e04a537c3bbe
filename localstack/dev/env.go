package dev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pintu/localstack/stack"
)

// WriteEnv writes what a CLI, an SDK or a shell needs to reach the stack, as NAME=VALUE lines. The file is readable by
// its owner only and appears whole or not at all.
func WriteEnv(path string, s *stack.Stack, token string) error {
	lines := []string{
		"AWS_ACCESS_KEY_ID=" + stack.AccessKey,
		"AWS_ENDPOINT_URL=" + s.AWSEndpoint(),
		"AWS_REGION=" + stack.Region,
		"AWS_SECRET_ACCESS_KEY=" + stack.SecretKey,
		"PINTU_TOKEN=" + token,
		"PINTU_URL=" + s.URL(),
	}
	for name, value := range s.Env("ApiFunction") {
		if strings.HasPrefix(name, "PINTU_") {
			lines = append(lines, name+"="+value)
		}
	}
	slices.Sort(lines)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the folder of %s: %w", path, err)
	}
	return writeFile(path, strings.Join(lines, "\n")+"\n")
}

// writeFile replaces a file in one step.
func writeFile(path, text string) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = temp.WriteString(text)
	err = errors.Join(err, temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, remove(temp.Name())))
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
