package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var masterText = base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

func master(t testing.TB) Master {
	t.Helper()
	m, err := ParseMaster(masterText)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func secret(t testing.TB, tenant string, generation int) Secret {
	t.Helper()
	s, err := master(t).Secret(tenant, generation)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A stored generation must give the same secret in every later version of this program. The text was made
// apart from it: HMAC-SHA256 of the info and 0x01, keyed by HMAC-SHA256 of the master, keyed by 32 zeros.
func TestSecretsNeverChange(t *testing.T) {
	const want = "whsec_3CuodgNCgcqYq39qvJ6nLfn6CjgV3u8AE/mDX/tR3Bw="
	if got := secret(t, "acme", 1).Reveal(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSecretsDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, tenant := range []string{"acme", "acme2", "acm", "acme/1", "other"} {
		for _, generation := range []int{1, 2, 11, 21} {
			s := secret(t, tenant, generation).Reveal()
			name := fmt.Sprintf("%s %d", tenant, generation)
			if seen[s] != "" {
				t.Errorf("%s and %s have one secret", name, seen[s])
			}
			seen[s] = name
		}
	}
	other, err := ParseMaster(base64.StdEncoding.EncodeToString([]byte("another master secret of 32 byte")))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := other.Secret("acme", 1); err != nil || seen[s.Reveal()] != "" {
		t.Errorf("two masters give one secret (%v)", err)
	}
}

func TestSecretsAreReadBack(t *testing.T) {
	s := secret(t, "acme", 1)
	back, err := ParseSecret(s.Reveal())
	if err != nil || back.Reveal() != s.Reveal() {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{"", "whsec_", "whsec_!", s.Reveal()[6:], "WHSEC_" + s.Reveal()[6:], s.Reveal() + "="} {
		if _, err := ParseSecret(bad); err == nil {
			t.Errorf("ParseSecret(%q) accepted", bad)
		}
	}
	for _, bad := range []string{"", "c2hvcnQ=", masterText[:40], "?"} {
		if _, err := ParseMaster(bad); err == nil {
			t.Errorf("ParseMaster(%q) accepted", bad)
		}
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	s, m := secret(t, "acme", 1), master(t)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		printed := fmt.Sprintf(format+format, s, m) + fmt.Sprintf(format, []Secret{s})
		for _, hidden := range []string{s.Reveal()[6:], string(s.key), "0123456789", "48 49 50"} {
			if strings.Contains(printed, hidden) {
				t.Errorf("%s prints %s", format, printed)
			}
		}
	}
}

func numbers(g Generations) (n []int) {
	for _, gen := range g {
		n = append(n, gen.Number)
	}
	return n
}

func TestSecretsOutliveTheirSuccessorByADay(t *testing.T) {
	g := Generations{{1, noon.Add(-100 * time.Hour)}, {2, noon}, {3, noon.Add(10 * time.Hour)}}
	for after, want := range map[time.Duration][]int{
		0: {3, 2, 1}, Overlap - time.Second: {3, 2, 1}, Overlap: {3, 2}, 10*time.Hour + Overlap - 1: {3, 2}, 10*time.Hour + Overlap: {3}, 1000 * time.Hour: {3},
	} {
		if got := numbers(g.Valid(noon.Add(after))); !slices.Equal(got, want) {
			t.Errorf("valid after %v: %v, want %v", after, got, want)
		}
	}
	if got := numbers(Generations{}.Valid(noon)); !slices.Equal(got, []int{1}) {
		t.Errorf("a tenant without secrets signs with %v", got)
	}
}

func TestRotate(t *testing.T) {
	g, err := Generations{}.Rotate(noon)
	if err != nil || !slices.Equal(numbers(g), []int{1}) {
		t.Fatalf("first: %v %v", g, err)
	}
	for i := range 2 {
		if g, err = g.Rotate(noon.Add(time.Duration(i+1) * time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(numbers(g), []int{1, 2, 3}) {
		t.Fatalf("after two more: %v", g)
	}
	_, err = g.Rotate(noon.Add(3 * time.Hour))
	var tooMany *TooManySecrets
	if !errors.As(err, &tooMany) || !tooMany.Until.Equal(noon.Add(time.Hour+Overlap)) {
		t.Fatalf("a fourth: %v", err)
	}
	g, err = g.Rotate(tooMany.Until)
	if err != nil || !slices.Equal(numbers(g), []int{2, 3, 4}) {
		t.Fatalf("when the first has ended: %v %v", g, err)
	}
}

// However a tenant rotates: a secret that was valid at some moment is valid until a day after its successor, and
// never more than three are.
func TestRotationsNeverCutASecretShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, created := noon, map[int]time.Time{}
		var g Generations
		for range rapid.IntRange(1, 30).Draw(t, "rotations") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(30*time.Hour)).Draw(t, "wait")))
			rotated, err := g.Rotate(now)
			if err != nil {
				if len(g.Valid(now)) != MaxSecrets {
					t.Fatalf("refused with %v valid", g.Valid(now))
				}
				continue
			}
			g = rotated
			created[g[len(g)-1].Number] = now
		}
		valid := map[int]bool{}
		for _, gen := range g.Valid(now) {
			valid[gen.Number] = true
		}
		for number := range created {
			successor, has := created[number+1]
			if want := !has || now.Before(successor.Add(Overlap)); valid[number] != want {
				t.Fatalf("secret %d valid: %v, want %v", number, valid[number], want)
			}
		}
		if len(valid) > MaxSecrets {
			t.Fatalf("%d are valid", len(valid))
		}
	})
}
