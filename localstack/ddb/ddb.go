// Package ddb is an embedded DynamoDB: one http.Handler that answers the AWS JSON 1.0 protocol well enough that the real
// AWS SDK cannot tell it from the service, as far as this module uses it.
//
// It keeps every table in memory, and with Config.Dir also in an append-only log that survives a restart. Rules, limits and
// error texts follow the DynamoDB developer guide and API reference.
//
// It refuses what the product does not use rather than guess: the parameters from before expressions (Expected,
// AttributeUpdates, KeyConditions, ...), local secondary indexes, PartiQL other than SELECT, and reading streams. It checks
// no signatures, throttles nobody and never raises TransactionConflict by itself: transactions are serialised by table locks.
// Secondary indexes are up to date at once, which AWS does not promise. The log is written without fsync: it survives the
// process, not a power cut; and nothing keeps two processes from using one directory.
package ddb

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// targetPrefix starts every X-Amz-Target header of the protocol version served here.
const targetPrefix = "DynamoDB_20120810."

// maxBody is the largest request DynamoDB reads: 16 MB, the limit of a batch.
const maxBody = 16 << 20

// Config says where the state lives and what time it is.
type Config struct {
	// Dir keeps the state across restarts; it is created when missing. Empty means memory only.
	Dir string
	// Now is the clock of TTL and of client request tokens. Nil means time.Now.
	Now func() time.Time
}

// Server is one DynamoDB account in one region. It is safe for concurrent use.
type Server struct {
	now func() time.Time
	log *journal // nil when nothing is kept on disk

	mu     sync.RWMutex // guards tables; taken before any table's own lock
	tables map[string]*table

	tokens   tokenCache
	nextReap atomic.Int64 // Unix seconds of the next look for expired items
	requests atomic.Uint64
}

// New returns a server with the tables kept in cfg.Dir, or with none. A log that is damaged anywhere but in its last,
// torn record is an error.
func New(cfg Config) (*Server, error) {
	s := &Server{now: cfg.Now, tables: map[string]*table{}, tokens: newTokenCache()}
	if s.now == nil {
		s.now = time.Now
	}
	if cfg.Dir == "" {
		return s, nil
	}
	j, err := openJournal(cfg.Dir, s)
	if err != nil {
		return nil, fmt.Errorf("open DynamoDB state: %w", err)
	}
	s.log = j
	return s, nil
}

// Close ends the log. Requests that write after it fail; tables in memory stay readable.
func (s *Server) Close() error {
	if s.log == nil {
		return nil
	}
	return s.log.close()
}

// operation answers one action: request body in, response body out.
type operation func(s *Server, body []byte) ([]byte, error)

var operations = map[string]operation{
	"CreateTable":               (*Server).createTable,
	"DescribeTable":             (*Server).describeTable,
	"DeleteTable":               (*Server).deleteTable,
	"ListTables":                (*Server).listTables,
	"UpdateTable":               (*Server).updateTable,
	"UpdateTimeToLive":          (*Server).updateTimeToLive,
	"DescribeTimeToLive":        (*Server).describeTimeToLive,
	"UpdateContinuousBackups":   (*Server).updateContinuousBackups,
	"DescribeContinuousBackups": (*Server).describeContinuousBackups,
	"GetItem":                   (*Server).getItem,
	"PutItem":                   (*Server).putItem,
	"UpdateItem":                (*Server).updateItem,
	"DeleteItem":                (*Server).deleteItem,
	"Query":                     (*Server).query,
	"Scan":                      (*Server).scan,
	"BatchGetItem":              (*Server).batchGetItem,
	"BatchWriteItem":            (*Server).batchWriteItem,
	"TransactWriteItems":        (*Server).transactWriteItems,
	"TransactGetItems":          (*Server).transactGetItems,
	"ExecuteStatement":          (*Server).executeStatement,
}

// ServeHTTP answers one DynamoDB request: POST / with the action in X-Amz-Target.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(w, r)
	if err == nil {
		body, err = s.serve(r, body)
	}
	status := http.StatusOK
	if err != nil {
		status, body = errorReply(err)
	}
	h := w.Header()
	h["Content-Type"] = contentType
	h["X-Amz-Crc32"] = []string{strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)}
	h["X-Amzn-Requestid"] = []string{fmt.Sprintf("%052d", s.requests.Add(1))}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	// The client may be gone; there is nobody left to tell.
	_, _ = w.Write(body)
}

var contentType = []string{"application/x-amz-json-1.0"}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limited := http.MaxBytesReader(w, r.Body, maxBody)
	if r.ContentLength > 0 && r.ContentLength <= maxBody {
		b := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(limited, b); err != nil {
			return nil, serializationError("read request: " + err.Error())
		}
		return b, nil
	}
	b, err := io.ReadAll(limited)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, &apiError{status: http.StatusRequestEntityTooLarge, code: "RequestEntityTooLargeException", message: "Request entity is larger than 16 MB"}
	}
	if err != nil {
		return nil, serializationError("read request: " + err.Error())
	}
	return b, nil
}

func (s *Server) serve(r *http.Request, body []byte) ([]byte, error) {
	action, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), targetPrefix)
	op := operations[action]
	if !ok || op == nil || r.Method != http.MethodPost {
		return nil, &apiError{code: "UnknownOperationException"}
	}
	if err := s.reapWhenDue(); err != nil {
		return nil, err
	}
	return op(s, body)
}

// decode reads a request body. Values inside it report their own validation errors.
func decode(body []byte, into any) error {
	err := json.Unmarshal(body, into)
	if err == nil {
		return nil
	}
	var api *apiError
	if errors.As(err, &api) {
		return api
	}
	return serializationError(err.Error())
}
