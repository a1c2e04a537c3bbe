package storetest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"pintu/internal/access"
	"pintu/internal/cli"
	"pintu/internal/fault"
)

// operator runs `pintu` in a folder whose .pintu/dev.env leads to the embedded tables.
func operator(t *testing.T, cfg aws.Config) func(args ...string) (stdout, stderr string, code int) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".pintu"), 0o755); err != nil {
		t.Fatal(err)
	}
	lines := "PINTU_CONTROL_TABLE=" + ControlTable + "\nAWS_ENDPOINT_URL=" + *cfg.BaseEndpoint +
		"\nAWS_REGION=us-east-1\nAWS_ACCESS_KEY_ID=pintu\nAWS_SECRET_ACCESS_KEY=pintu-local-secret\n"
	if err := os.WriteFile(filepath.Join(dir, ".pintu", "dev.env"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) (string, string, int) {
		var stdout, stderr bytes.Buffer
		code := cli.Run(t.Context(), cli.Env{Args: args, Stdout: &stdout, Stderr: &stderr, Getenv: func(string) string { return "" }, Dir: dir})
		return stdout.String(), stderr.String(), code
	}
}

func TestClientCommands(t *testing.T) {
	store, _, cfg := Start(t)
	s := access.New(access.Config{Store: store, Now: time.Now})
	pintu := operator(t, cfg)
	works := func(token string, want bool) access.Caller {
		t.Helper()
		caller, err := s.Authenticate(t.Context(), token)
		if (err == nil) != want || err != nil && !fault.Is(err, fault.Unauthorized) {
			t.Fatalf("Authenticate: %v", err)
		}
		return caller
	}

	stdout, stderr, code := pintu("client", "create", "loader", "--tenant", "acme", "--scope", "jobs:submit,jobs:read", "--active-jobs", "3")
	first := strings.TrimSuffix(stdout, "\n")
	if code != 0 || !strings.Contains(stderr, "shown once") || strings.Contains(stderr, first) {
		t.Fatalf("create: %d, %q, %q", code, stdout, stderr)
	}
	if caller := works(first, true); caller.Tenant != "acme" || caller.Client != "loader" || len(caller.Scopes) != 2 || caller.Limits.ActiveJobs != 3 {
		t.Errorf("caller %+v", caller)
	}

	stdout, stderr, code = pintu("client", "rotate", "loader", "--tenant", "acme", "--overlap", "0s", "--expires-in", "1h", "-o", "json")
	var rotated struct {
		Tenant, Client, Token string
		TokenID               string    `json:"token_id"`
		ExpiresAt             time.Time `json:"expires_at"`
	}
	if err := json.Unmarshal([]byte(stdout), &rotated); code != 0 || err != nil || rotated.Tenant != "acme" || rotated.Client != "loader" {
		t.Fatalf("rotate: %d, %q, %q, %v", code, stdout, stderr, err)
	}
	if left := time.Until(rotated.ExpiresAt); left < 50*time.Minute || left > time.Hour {
		t.Errorf("the token lives for %v", left)
	}
	works(first, false)
	if caller := works(rotated.Token, true); caller.TokenID != rotated.TokenID {
		t.Errorf("token id %s, want %s", caller.TokenID, rotated.TokenID)
	}

	if _, stderr, code := pintu("client", "revoke", "loader", "--tenant", "acme"); code != 1 || !strings.Contains(stderr, "--yes") {
		t.Errorf("revoke without --yes: %d, %q", code, stderr)
	}
	works(rotated.Token, true)
	if _, stderr, code := pintu("client", "revoke", "loader", "--tenant", "acme", "--token", rotated.TokenID, "--yes"); code != 0 {
		t.Errorf("revoke a token: %d, %q", code, stderr)
	}
	works(rotated.Token, false)

	stdout, _, _ = pintu("client", "create", "loader", "--tenant", "acme")
	last := strings.TrimSuffix(stdout, "\n")
	if caller := works(last, true); len(caller.Scopes) != len(access.Scopes) {
		t.Errorf("scopes %v, want all", caller.Scopes)
	}
	for range 2 {
		if _, stderr, code := pintu("client", "revoke", "loader", "--tenant", "acme", "--yes"); code != 0 {
			t.Errorf("revoke: %d, %q", code, stderr)
		}
	}
	works(last, false)
	if _, stderr, code := pintu("client", "rotate", "loader", "--tenant", "acme"); code != 1 || !strings.Contains(stderr, "there is no such client, or it is revoked") {
		t.Errorf("rotate a revoked client: %d, %q", code, stderr)
	}
}

func TestClientCommandsRefuse(t *testing.T) {
	_, _, cfg := Start(t)
	pintu := operator(t, cfg)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"create", "Loader", "--tenant", "acme"}, "INVALID_REQUEST: tenant and client must each be"},
		{[]string{"create", "loader", "--tenant", "acme", "--scope", "everything"}, `there is no scope "everything"`},
		{[]string{"create", "loader", "--tenant", "acme", "--active-jobs", "-1"}, "cannot be negative"},
		{[]string{"rotate", "nobody", "--tenant", "acme"}, "NOT_FOUND: there is no such client"},
		{[]string{"revoke", "nobody", "--tenant", "acme", "--yes"}, "NOT_FOUND: there is no such client"},
		{[]string{"revoke", "nobody", "--tenant", "acme", "--token", "x", "--yes"}, "NOT_FOUND: the client has no such token"},
	} {
		stdout, stderr, code := pintu(append([]string{"client"}, tt.args...)...)
		if code != 1 || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%v: %d, %q, %q", tt.args, code, stdout, stderr)
		}
	}
}
