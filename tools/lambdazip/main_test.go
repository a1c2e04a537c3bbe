package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestZipIsReproducibleAndHoldsAnExecutableBootstrap(t *testing.T) {
	dir := t.TempDir()
	executable := filepath.Join(dir, "program")
	if err := os.WriteFile(executable, bytes.Repeat([]byte("code"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	var packed [2][]byte
	for i, name := range []string{"a.zip", "b.zip"} {
		size, err := pack(executable, filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		packed[i], err = os.ReadFile(filepath.Join(dir, name))
		if err != nil || int64(len(packed[i])) != size {
			t.Fatalf("%d bytes on disk, %d told: %v", len(packed[i]), size, err)
		}
	}
	if !bytes.Equal(packed[0], packed[1]) {
		t.Error("two zips of one executable differ")
	}
	z, err := zip.NewReader(bytes.NewReader(packed[0]), int64(len(packed[0])))
	if err != nil || len(z.File) != 1 {
		t.Fatalf("want one entry: %v", err)
	}
	entry := z.File[0]
	if entry.Name != "bootstrap" || entry.Mode().Perm() != 0o755 {
		t.Errorf("entry %s %v", entry.Name, entry.Mode())
	}
	r, err := entry.Open()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || len(got) != 4000 {
		t.Errorf("%d bytes come out: %v", len(got), err)
	}
}
