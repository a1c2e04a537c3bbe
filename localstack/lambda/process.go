package lambda

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// environment is one process of a function with the Runtime API it talks to.
type environment struct {
	appID  string
	name   string // of the function
	arn    string
	cmd    *exec.Cmd
	api    *http.Server
	work   chan *invocation // the poll for next takes from it
	polled chan struct{}    // one token per poll
	exited chan struct{}    // closed when the process has been reaped; reason is set before
	reason string           // such as "exit status 1" or "signal: killed"

	mu        sync.Mutex
	current   *invocation
	initError []byte // what the process reported before it asked for work
}

// start runs the function's binary.
func (p *pool) start(appID string) (*environment, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the runtime api: %w", err)
	}
	e := &environment{appID: appID, name: p.Name, arn: p.ARN, work: make(chan *invocation), polled: make(chan struct{}, 1), exited: make(chan struct{})}
	e.api = &http.Server{Handler: e.routes()}
	logs := p.broker.log.lines(appID)
	e.cmd = exec.Command(p.Bootstrap)
	e.cmd.Dir = filepath.Dir(p.Bootstrap)
	e.cmd.Env = p.environ(appID, l.Addr().String())
	e.cmd.Stdout, e.cmd.Stderr = logs, logs
	e.cmd.SysProcAttr = processAttributes()
	e.cmd.WaitDelay = time.Second // a child of the function may hold the pipes open
	if !p.broker.track() {
		l.Close()
		return nil, ErrClosed
	}
	if err := p.broker.spawner.start(e.cmd); err != nil {
		p.broker.settled.Done()
		l.Close()
		return nil, err
	}
	p.mu.Lock()
	p.all = append(p.all, e)
	p.mu.Unlock()
	go e.api.Serve(l) // ends with api.Close
	go p.reap(e, logs)
	if p.broker.isClosed() { // Close may have missed it
		go e.stop(p.broker.cfg.Grace)
	}
	return e, nil
}

// reap waits for the end of a process and tells everyone.
func (p *pool) reap(e *environment, logs *lineWriter) {
	defer p.broker.settled.Done()
	e.reason = "exit status 0"
	if err := e.cmd.Wait(); err != nil {
		e.reason = err.Error()
	}
	logs.flush()
	p.forget(e)
	close(e.exited)
	e.api.Close()
}

func (b *Broker) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

func (e *environment) alive() bool {
	select {
	case <-e.exited:
		return false
	default:
		return true
	}
}

// kill ends the process and its children. The process is its own group, see processAttributes.
func (e *environment) kill() {
	if e.alive() {
		syscall.Kill(-e.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// stop asks the process to end and kills it after grace.
func (e *environment) stop(grace time.Duration) {
	if e.alive() {
		syscall.Kill(-e.cmd.Process.Pid, syscall.SIGTERM)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-e.exited:
	case <-timer.C:
		e.kill()
	}
}

// environ is what AWS sets for a function on provided.al2023, and the endpoint and app id of this machine. Nothing of
// the stack's own environment gets in.
func (p *pool) environ(appID, runtimeAPI string) []string {
	c := p.broker.cfg
	vars := map[string]string{
		"AWS_LAMBDA_RUNTIME_API":          runtimeAPI,
		"AWS_LAMBDA_FUNCTION_NAME":        p.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(p.MemoryMB),
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + p.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      time.Now().UTC().Format("2006/01/02") + "/[$LATEST]" + appID,
		"AWS_LAMBDA_LOG_FORMAT":           p.LogFormat,
		"AWS_REGION":                      c.Region,
		"AWS_DEFAULT_REGION":              c.Region,
		"AWS_ACCESS_KEY_ID":               c.AccessKey,
		"AWS_SECRET_ACCESS_KEY":           c.SecretKey,
		"AWS_ENDPOINT_URL":                c.Endpoint,
		"AWS_SDK_UA_APP_ID":               appID,
		"AWS_CONFIG_FILE":                 "/dev/null", // the SDK would read the developer's own files
		"AWS_SHARED_CREDENTIALS_FILE":     "/dev/null",
		"LAMBDA_TASK_ROOT":                filepath.Dir(p.Bootstrap),
		"LAMBDA_RUNTIME_DIR":              "/var/runtime",
		"_HANDLER":                        "bootstrap",
		"LANG":                            "en_US.UTF-8",
		"TZ":                              ":UTC",
		"PATH":                            "/usr/local/bin:/usr/bin/:/bin:/opt/bin",
	}
	for k, v := range p.Env {
		vars[k] = v
	}
	var out []string
	for k, v := range vars {
		out = append(out, k+"="+v)
	}
	return out
}
