package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"pintu/internal/access"
	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/idempotency"
	"pintu/internal/logline"
)

// call is one request under way: what the checks have found out about it so far.
type call struct {
	*http.Request
	requestID string
	language  language
	caller    access.Caller
	key       string // Idempotency-Key, "" when there is none
	body      []byte // empty when there is none
	params    params
	route     string // pattern, for the log: a concrete path may hold a record key or a cursor
}

func (c *call) ctx() context.Context { return c.Context() }

// intent names what the request is about: understood is the request with its defaults filled in.
func (c *call) intent(understood any) (idempotency.Intent, error) {
	if c.key == "" {
		return idempotency.Intent{}, nil
	}
	print, err := idempotency.Fingerprint(c.Method, c.URL.Path, understood)
	return idempotency.Intent{Key: c.key, Fingerprint: print}, err
}

// jobID reads the job id of the path. What cannot be an id names no job.
func (c *call) jobID() (id.Job, error) {
	jobID, ok := id.ParseJob(c.PathValue("id"))
	if !ok {
		return "", fault.New(fault.JobNotFound, "there is no such job")
	}
	return jobID, nil
}

// handler serves the routes, and answers everything else in the shape of the contract.
func (a *api) handler(routes []route) http.Handler {
	byPath := map[string][]route{}
	for _, r := range routes {
		byPath[r.path] = append(byPath[r.path], r)
	}
	mux := http.NewServeMux()
	for pattern, methods := range byPath {
		mux.Handle(pattern, a.endpoint(methods))
	}
	unknown := a.endpoint(nil)
	mux.Handle("/", unknown)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.EscapedPath(); p != clean(p) {
			unknown.ServeHTTP(w, r) // the mux would redirect
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// clean is the form in which ServeMux accepts a path.
func clean(p string) string {
	c := path.Clean("/" + p)
	if c != "/" && strings.HasSuffix(p, "/") {
		c += "/"
	}
	return c
}

// endpoint serves the routes of one path, which differ by method. None means that the path is unknown.
func (a *api) endpoint(methods []route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := a.Now()
		c := &call{Request: r, requestID: a.requestID(r), language: languageOf(r.Header.Get("Accept-Language"))}
		out, err := a.answer(c, w, methods)
		if err != nil {
			out = failure(c, err)
		}
		a.write(c, w, out)
		a.log(c, out, err, a.Now().Sub(began))
	})
}

// requestID keeps the id that the client chose, at most 128 visible characters, or makes one.
func (a *api) requestID(r *http.Request) string {
	given := r.Header.Get("X-Request-Id")
	visible := !strings.ContainsFunc(given, func(c rune) bool { return c < 0x21 || c > 0x7e })
	if len(given) >= 1 && len(given) <= 128 && visible {
		return given
	}
	return id.NewRequest(a.Now())
}

// answer makes the checks that every operation shares, in the order of the contract, and then serves it.
func (a *api) answer(c *call, w http.ResponseWriter, methods []route) (out reply, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	r, err := pick(c, w, methods)
	if err != nil {
		return reply{}, err
	}
	c.route = r.path
	steps := []func(*call, http.ResponseWriter, route) error{a.authenticate, authorize, checkKey, readBody, readQuery}
	for _, step := range steps {
		if err := step(c, w, r); err != nil {
			return reply{}, err
		}
	}
	return r.serve(c)
}

func pick(c *call, w http.ResponseWriter, methods []route) (route, error) {
	if len(methods) == 0 {
		return route{}, fault.New(fault.NotFound, "there is nothing at this address; GET /v1/openapi.json lists every operation")
	}
	var allowed []string
	for _, r := range methods {
		if r.method == c.Method {
			return r, nil
		}
		allowed = append(allowed, r.method)
	}
	c.route = methods[0].path
	slices.Sort(allowed)
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return route{}, fault.New(fault.MethodNotAllowed, "this address answers %s only", strings.Join(allowed, ", "))
}

func (a *api) authenticate(c *call, w http.ResponseWriter, r route) error {
	if r.permission == nil {
		return nil
	}
	scheme, token, _ := strings.Cut(c.Header.Get("Authorization"), " ")
	var err error
	if strings.EqualFold(scheme, "Bearer") && token != "" {
		c.caller, err = a.Access.Authenticate(c.ctx(), strings.TrimSpace(token))
	} else {
		err = fault.New(fault.Unauthorized, "send a valid token: Authorization: Bearer pintu_…")
	}
	if fault.Is(err, fault.Unauthorized) {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	return err
}

func authorize(c *call, _ http.ResponseWriter, r route) error {
	if r.permission == nil {
		return nil
	}
	scope := r.permission(c.Request)
	if scope == "" || c.caller.Can(scope) {
		return nil
	}
	return fault.New(fault.Forbidden, "this token lacks the scope %s; use a token that has it", scope).With("required_scope", string(scope))
}

func checkKey(c *call, _ http.ResponseWriter, r route) error {
	keys := c.Header.Values("Idempotency-Key")
	switch {
	case r.key == keyIgnored:
		return nil
	case len(keys) > 1:
		return fault.New(fault.InvalidIdempotencyKey, "send one Idempotency-Key header, not %d", len(keys))
	case len(keys) == 1:
		c.key = keys[0]
		return idempotency.CheckKey(c.key)
	case r.key == keyRequired:
		return fault.New(fault.IdempotencyKeyRequired, "send an Idempotency-Key header, so that a retry of this request does not do the work twice")
	}
	return nil
}

// panicked makes an error of a panic, with where it happened.
func panicked(v any) error { return fmt.Errorf("%s\n%s", logline.Panic(v), debug.Stack()) }

// reply is an answer about to be written. body nil means none.
type reply struct {
	status int
	header map[string]string
	body   []byte
	code   fault.Code // of an error, for the log
	jobID  id.Job     // for the log
}

// with adds a header.
func (r reply) with(name, value string) reply {
	if r.header == nil {
		r.header = map[string]string{}
	}
	r.header[name] = value
	return r
}

func (r reply) about(jobID id.Job) reply {
	r.jobID = jobID
	return r
}

// replayed marks an answer that an earlier request with the same key had already earned.
func (r reply) replayed(yes bool) reply {
	if !yes {
		return r
	}
	return r.with("Idempotency-Replayed", "true")
}

func (a *api) write(c *call, w http.ResponseWriter, out reply) {
	h := w.Header()
	h.Set("X-Request-Id", c.requestID)
	h.Set("Cache-Control", "no-store") // answers hold signed URLs and other people's data
	for name, value := range out.header {
		h.Set(name, value)
	}
	if out.body != nil {
		h.Set("Content-Type", "application/json; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
	}
	w.WriteHeader(out.status)
	_, _ = w.Write(out.body) // fails only when the client has gone, and then nobody is there to be told
}

func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
