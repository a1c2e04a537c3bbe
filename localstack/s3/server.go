// Package s3 runs versitygw as the embedded stack's object store, in this process and on a loopback port: real
// signature checks, versions, conditional writes, checksums and multipart uploads, with metadata beside the objects in
// plain files, so that any file system will do.
//
// It adds nothing to the gateway and hides none of its limits: one store per process; a clock that is the machine's, so
// presigned URLs expire by real time; and a working directory, which Start changes for the whole process because the
// gateway finds its files by relative paths. Close restores it. Resolve relative paths before Start. The gateway also
// prints two lines about its set-up on standard output. What AWS does and it does not: lifecycle rules, keys that end in
// a slash with content or hold two in a row, and the refusal of a presigned URL that is dated in the future.
package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3api"
)

// Config says where the store keeps its objects, where it listens and who may use it.
type Config struct {
	// Dir holds the folders objects, metadata and versions; empty means a temporary directory that Close removes.
	Dir string
	// Addr is the address to listen on; port 0 takes a free one. It defaults to 127.0.0.1:0.
	Addr string
	// AccessKey and SecretKey are the only credentials there are. Both are required.
	AccessKey, SecretKey string
	// Region is what requests must be signed for; it defaults to us-east-1.
	Region string
}

// Server is a running store.
type Server struct {
	addr    string
	scratch string // removed by Close when not empty
	before  string // the working directory to go back to
	stop    context.CancelFunc
	ended   chan error
}

// bindTries is how often Start looks for a free port: between looking and listening another process may take it.
const bindTries = 5

// Start opens the store and returns once it accepts requests. It runs until Close or the end of ctx.
func Start(ctx context.Context, c Config) (*Server, error) {
	if c.AccessKey == "" || c.SecretKey == "" {
		return nil, errors.New("start s3: no credentials are configured")
	}
	s := &Server{}
	dir, err := s.prepare(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("start s3: %w", err)
	}
	tries := 1
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if _, port, _ := net.SplitHostPort(c.Addr); port == "0" {
		tries = bindTries
	}
	for range tries {
		if err = s.run(ctx, dir, c); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("start s3: %w", errors.Join(err, s.restore()))
}

// prepare makes the directories, and remembers the working directory.
func (s *Server) prepare(dir string) (string, error) {
	var err error
	if s.before, err = os.Getwd(); err != nil {
		return "", err
	}
	if dir == "" {
		if s.scratch, err = os.MkdirTemp("", "pintu-s3-"); err != nil {
			return "", err
		}
		dir = s.scratch
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	for _, sub := range []string{"objects", "metadata", "versions"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// run starts the gateway and waits until it listens or has failed.
func (s *Server) run(ctx context.Context, dir string, c Config) error {
	addr, err := freeAddr(c.Addr)
	if err != nil {
		return err
	}
	backend, err := open(dir)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	listening := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- embedgw.RunVersityGW(ctx, backend, gateway(c, addr, func() { close(listening) }))
	}()
	select {
	case err := <-ended:
		stop()
		return err
	case <-listening:
	}
	s.addr, s.stop, s.ended = addr, stop, ended
	if err := s.answered(ctx); err != nil {
		stop()
		return errors.Join(err, <-ended)
	}
	return nil
}

func open(dir string) (*posix.Posix, error) {
	sidecar, err := meta.NewSideCar(filepath.Join(dir, "metadata"))
	if err != nil {
		return nil, fmt.Errorf("open metadata: %w", err)
	}
	// It tells of its folders on stdout, which belongs to the program. One store per process opens here, before
	// the program says anything.
	stdout := os.Stdout
	os.Stdout, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		os.Stdout = stdout
		return nil, fmt.Errorf("open objects: %w", err)
	}
	silence := os.Stdout
	backend, err := posix.New(filepath.Join(dir, "objects"), sidecar, posix.PosixOpts{
		VersioningDir:       filepath.Join(dir, "versions"),
		SideCarDir:          filepath.Join(dir, "metadata"),
		CopyObjectThreshold: maxCopy, // zero would refuse every copy
	})
	os.Stdout = stdout
	if err := errors.Join(err, silence.Close()); err != nil {
		return nil, fmt.Errorf("open objects: %w", err)
	}
	return backend, nil
}

func gateway(c Config, addr string, onListen func()) *embedgw.Config {
	root := auth.Account{Access: c.AccessKey, Secret: c.SecretKey, Role: auth.RoleAdmin}
	return &embedgw.Config{
		RootUserAccess: c.AccessKey, RootUserSecret: c.SecretKey, Region: c.Region,
		IAMService: rootOnly{auth.NewIAMServiceSingle(root)},
		Ports:      []string{addr}, KeepAlive: true, Quiet: true,
		MaxConnections: maxConcurrent, MaxRequests: maxConcurrent, MultipartMaxParts: maxParts,
		S3Options: []s3api.Option{s3api.WithOnListen(onListen)},
	}
}

// answered waits for an answer. The gateway says that it listens just before it takes connections, and a stop between
// the two would be lost.
func (s *Server) answered(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL(), nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("ask for the first answer: %w", err)
	}
	return res.Body.Close() // any answer will do; this one is that the request is not signed
}

// rootOnly is the gateway's service for one account, but answers an unknown access key as S3 does, with
// InvalidAccessKeyId.
type rootOnly struct{ auth.IAMService }

func (r rootOnly) GetUserAccount(access string) (auth.Account, error) {
	account, err := r.IAMService.GetUserAccount(access)
	if err != nil {
		return auth.Account{}, auth.ErrNoSuchUser
	}
	return account, nil
}

// maxConcurrent bounds connections and requests alike. maxParts and maxCopy (bytes) are S3's limits.
const (
	maxConcurrent = 4096
	maxParts      = 10000
	maxCopy       = 5 << 30
)

// freeAddr replaces port 0 by a port that was free a moment ago: the gateway does not tell which one it got.
func freeAddr(addr string) (string, error) {
	if _, port, err := net.SplitHostPort(addr); err != nil || port != "0" {
		return addr, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// URL is the endpoint, such as http://127.0.0.1:41234, for clients that address buckets by path.
func (s *Server) URL() string { return "http://" + s.addr }

// Close stops the store, goes back to the former working directory and removes a temporary one.
func (s *Server) Close() error {
	s.stop()
	err := <-s.ended
	s.ended <- nil // a second Close finds it ended too
	return errors.Join(err, s.restore())
}

func (s *Server) restore() error {
	err := os.Chdir(s.before)
	if s.scratch == "" {
		return err
	}
	return errors.Join(err, os.RemoveAll(s.scratch))
}
