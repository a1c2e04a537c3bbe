package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"pintu/internal/fault"
	"pintu/internal/quarantine"
)

const (
	maxRowsNamed = 1000     // in one request
	maxRowNumber = 1e12 - 1 // what a row's key has room for
	maxReason    = 500      // characters
	maxRaw       = quarantine.MaxInlineRaw
)

// rowCodes are the codes a row can be rejected with.
var rowCodes = []string{
	string(fault.MissingValue), string(fault.TypeMismatch), string(fault.ConstraintViolated), string(fault.WrongColumnCount),
	string(fault.MalformedRow), string(fault.InvalidEncoding), string(fault.DuplicateKey), string(fault.KeyConflict),
	string(fault.RecordTooLarge), string(fault.TransformFailed), string(fault.Internal),
}

var rowClasses = []string{string(quarantine.Data), string(quarantine.Code)}

// listRows gives a page of the rows of a job that could not be applied, in row order.
func (a *api) listRows(c *call) (reply, error) {
	p := &c.params
	f := quarantine.Filter{
		Row:   p.rowNumber("row_number"),
		State: quarantine.State(p.oneOf("state", "quarantined", "retrying", "resolved", "discarded")),
		Code:  fault.Code(p.oneOf("code", rowCodes...)),
		Class: quarantine.Class(p.oneOf("class", rowClasses...)),
	}
	limit, cursor := p.limit(pageLimit(c.caller)), p.text("cursor")
	if f.Row != 0 && (p.values.Has("cursor") || p.values.Has("limit")) {
		p.problems.add("row_number", "names one row; cursor and limit do not go with it")
	}
	if err := p.problems.err(); err != nil {
		return reply{}, err
	}
	jobID, err := c.jobID()
	if err != nil {
		return reply{}, err
	}
	out, err := page("rows", limit, func(limit int) ([]quarantine.Row, string, error) {
		got, err := a.Rows.List(c.ctx(), c.caller, jobID, f, cursor, limit, maxPageBytes)
		return got.Rows, got.NextCursor, err
	})
	return out.about(jobID), err
}

// rowNumber takes the number of a row; 0 when it is absent.
func (p *params) rowNumber(name string) int64 {
	if !p.values.Has(name) {
		return 0
	}
	n, err := strconv.ParseInt(p.values.Get(name), 10, 64)
	if err != nil || n < 1 || n > maxRowNumber {
		p.problems.add(name, "must be a whole number from 1")
	}
	return n
}

// patchRow corrects the payload or the class of a row that nobody changed since the client saw it.
func (a *api) patchRow(c *call) (reply, error) {
	tags := c.Header.Values("If-Match")
	if len(tags) == 0 {
		return reply{}, fault.New(fault.PreconditionRequired, "send If-Match with the etag of the row as you read it, so that nobody's change is lost")
	}
	change, err := readChange(c.body)
	if err != nil {
		return reply{}, err
	}
	jobID, err := c.jobID()
	if err != nil {
		return reply{}, err
	}
	n, err := strconv.ParseInt(c.PathValue("row_number"), 10, 64)
	if err != nil || n < 1 || n > maxRowNumber || strconv.FormatInt(n, 10) != c.PathValue("row_number") {
		return reply{}, fault.New(fault.RowNotFound, "rows are numbered from 1")
	}
	row, err := a.Rows.Patch(c.ctx(), c.caller, jobID, n, func(etag string) bool { return matches(tags, etag) }, change)
	if err != nil {
		return reply{}, err
	}
	out, err := answer(http.StatusOK, row)
	return out.with("ETag", `"`+row.ETag()+`"`).about(jobID), err
}

// matches compares If-Match with the state of a row: * is any, and the etag may come with quotes, as in a
// header, or without them, as in the row. A weak one never matches.
func matches(headers []string, etag string) bool {
	for tag := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || tag == etag || tag == `"`+etag+`"` {
			return true
		}
	}
	return false
}

func readChange(body []byte) (quarantine.Change, error) {
	var bad problems
	o := bad.readObject(body)
	raw, err := o.payload("raw", "raw_base64")
	if err != nil {
		return quarantine.Change{}, err
	}
	change := quarantine.Change{Raw: raw}
	if class := o.oneOf("class", rowClasses...); class != "" {
		change.Class = new(quarantine.Class(class))
	}
	o.close()
	if len(bad) == 0 && change == (quarantine.Change{}) {
		bad.add("", "changes nothing: send raw, raw_base64 or class")
	}
	return change, bad.err()
}

// payload takes the bytes of a row as text or, when they are not UTF-8, as base64; nil when neither is there.
func (o *object) payload(text, binary string) (*[]byte, error) {
	var raw []byte
	switch v, encoded := o.take(text), o.take(binary); {
	case v == nil && encoded == nil:
		return nil, nil
	case v != nil && encoded != nil:
		o.bad(binary, "and %s are two ways to say the same; send one", o.at(text))
	case v != nil:
		s, ok := v.(string)
		if !ok {
			o.bad(text, "must be a string, is %s", kindOf(v))
		}
		raw = []byte(s)
	default:
		s, ok := encoded.(string)
		var err error
		if raw, err = base64.StdEncoding.DecodeString(s); !ok || err != nil {
			o.bad(binary, "must be bytes in base64")
		}
	}
	if len(*o.problems) == 0 && len(raw) == 0 {
		o.bad(text, "must not be empty; a row that is not wanted is discarded")
	}
	if len(raw) > maxRaw {
		return nil, fault.New(fault.PayloadTooLarge, "the payload of a row may have %d bytes", maxRaw).With("limit_bytes", maxRaw)
	}
	return &raw, nil
}

// oneOf takes a choice; "" when it is absent.
func (o *object) oneOf(name string, known ...string) string {
	v := o.take(name)
	s, ok := v.(string)
	if v != nil && (!ok || !slices.Contains(known, s)) {
		o.bad(name, "must be one of %s", strings.Join(known, ", "))
	}
	return s
}

// rowNumbers takes numbers of rows and gives them in order, each once; nil when they are absent.
func (o *object) rowNumbers(name string) []int64 {
	v := o.take(name)
	if v == nil {
		return nil
	}
	entries, ok := v.([]any)
	if !ok {
		o.bad(name, "must be an array of row numbers, is %s", kindOf(v))
		return nil
	}
	if len(entries) < 1 || len(entries) > maxRowsNamed {
		o.bad(name, "must name 1 to %d rows, names %d", maxRowsNamed, len(entries))
	}
	numbers := make([]int64, len(entries))
	for i, entry := range entries {
		number, _ := entry.(json.Number)
		n, ok := wholeNumber(number)
		if !ok || n < 1 || n > maxRowNumber {
			o.bad(name+"["+strconv.Itoa(i)+"]", "must be a whole number from 1")
		}
		numbers[i] = n
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// rowsRetry is the body of a retry as it was understood.
type rowsRetry struct {
	quarantine.Selection
	DatasetVersion int `json:"dataset_version"` // 0: the newest
}

// retryRows makes a job that tries quarantined rows again.
func (a *api) retryRows(c *call) (reply, error) {
	asked, err := readRetry(c.body)
	if err != nil {
		return reply{}, err
	}
	jobID, err := c.jobID()
	if err != nil {
		return reply{}, err
	}
	in, err := c.intent(asked)
	if err != nil {
		return reply{}, err
	}
	done, err := a.Jobs.RetryRows(c.ctx(), c.caller, in, c.requestID, jobID, asked.Selection, asked.DatasetVersion)
	if err != nil {
		return reply{}, err
	}
	out, err := answer(http.StatusAccepted, viewOf(done.Job, c.language))
	if done.Allowance != nil {
		out = out.withRateLimit(done.Allowance.Limit, done.Allowance.Remaining, done.Allowance.ResetSeconds)
	}
	return out.replayed(done.Replayed).pollable(done.Job).about(done.Job.ID), err
}

func readRetry(body []byte) (rowsRetry, error) {
	var bad problems
	o := bad.readObject(body)
	asked := rowsRetry{quarantine.Selection{
		Numbers: o.rowNumbers("rows"), Code: fault.Code(o.oneOf("code", rowCodes...)), Class: quarantine.Class(o.oneOf("class", rowClasses...)),
	}, int(o.whole("dataset_version", 0, 1, 1<<31-1))}
	if asked.Numbers != nil && (asked.Code != "" || asked.Class != "") {
		o.bad("rows", "names rows; code and class do not go with it")
	}
	o.close()
	return asked, bad.err()
}

// discardRows gives rows up. They stay on record with the reason.
func (a *api) discardRows(c *call) (reply, error) {
	var bad problems
	o := bad.readObject(c.body)
	asked := struct {
		Rows   []int64 `json:"rows"`
		Reason string  `json:"reason"`
	}{o.rowNumbers("rows"), o.required("reason", maxReason)}
	if o.members["rows"] == nil {
		o.bad("rows", "is required")
	}
	o.close()
	if err := bad.err(); err != nil {
		return reply{}, err
	}
	jobID, err := c.jobID()
	if err != nil {
		return reply{}, err
	}
	in, err := c.intent(asked)
	if err != nil {
		return reply{}, err
	}
	replayed, err := a.Rows.Discard(c.ctx(), c.caller, in, jobID, asked.Rows, asked.Reason)
	if err != nil {
		return reply{}, err
	}
	out, err := answer(http.StatusOK, map[string]any{"job_id": jobID, "discarded": asked.Rows})
	return out.replayed(replayed).about(jobID), err
}
