// Command lambdazip packs one executable as the bootstrap of a Lambda zip. The same executable gives the
// same bytes, so that a deployment changes only functions whose code changed. It refuses a zip over the
// size budget: what a function's zip holds is what a cold start must load.
package main

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	budget := flag.Int64("max", 0, "largest allowed size of the zip, in bytes")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: lambdazip -max BYTES EXECUTABLE ZIP")
		os.Exit(2)
	}
	size, err := pack(flag.Arg(0), flag.Arg(1))
	if err == nil && size > *budget {
		err = fmt.Errorf("%s has %d bytes, its budget is %d", flag.Arg(1), size, *budget)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lambdazip:", err)
		os.Exit(1)
	}
	fmt.Printf("%9d bytes  %s\n", size, filepath.Base(flag.Arg(1)))
}

func pack(executable, target string) (size int64, err error) {
	in, err := os.Open(executable)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.Create(target)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := write(out, in); err != nil {
		return 0, fmt.Errorf("pack %s: %w", executable, err)
	}
	return out.Seek(0, io.SeekCurrent)
}

func write(out io.Writer, in io.Reader) error {
	z := zip.NewWriter(out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	entry := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate, Modified: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	entry.SetMode(0o755)
	w, err := z.CreateHeader(entry)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, in); err != nil {
		return err
	}
	return z.Close()
}
