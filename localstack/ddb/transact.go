package ddb

import (
	"errors"
	"strings"
)

// Limits of a transaction.
const (
	maxTransactItems = 100
	maxTransactBytes = 4 << 20
	maxTokenLength   = 36
)

// transactItem is one part of TransactWriteItems: exactly one of its fields is set.
type transactItem struct {
	Put            *writeRequest `json:",omitempty"`
	Update         *writeRequest `json:",omitempty"`
	Delete         *writeRequest `json:",omitempty"`
	ConditionCheck *writeRequest `json:",omitempty"`
}

func (i transactItem) only() (writeKind, *writeRequest, error) {
	var kind writeKind
	var only *writeRequest
	for k, req := range map[writeKind]*writeRequest{writePut: i.Put, writeUpdate: i.Update, writeDelete: i.Delete, writeCheck: i.ConditionCheck} {
		if req == nil {
			continue
		}
		if only != nil {
			return 0, nil, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
		}
		kind, only = k, req
	}
	if only == nil {
		return 0, nil, invalid("Invalid Request: TransactWriteRequest should contain Delete or Put or Update request")
	}
	return kind, only, nil
}

type transactWriteRequest struct {
	TransactItems          []transactItem
	ClientRequestToken     string
	ReturnConsumedCapacity string
}

func (s *Server) transactWriteItems(body []byte) ([]byte, error) {
	var req transactWriteRequest
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	if len(req.ClientRequestToken) > maxTokenLength {
		return nil, invalid("1 validation error detected: Value '%s' at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal to %d", req.ClientRequestToken, maxTokenLength)
	}
	writes, err := s.prepareAll(req.TransactItems)
	if err != nil {
		return nil, err
	}
	used, err := s.transactOnce(req, writes)
	if err != nil {
		return nil, err
	}
	r := newReply()
	err = r.capacities(used, req.ReturnConsumedCapacity, true)
	return r.done(), err
}

func checkTransactCount(n int) error {
	if n == 0 || n > maxTransactItems {
		return invalid("1 validation error detected: Value at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to %d, Member must have length greater than or equal to 1", maxTransactItems)
	}
	return nil
}

func (s *Server) prepareAll(items []transactItem) ([]*write, error) {
	if err := checkTransactCount(len(items)); err != nil {
		return nil, err
	}
	writes := make([]*write, len(items))
	for i, one := range items {
		kind, req, err := one.only()
		if err != nil {
			return nil, err
		}
		if kind == writeCheck && req.ConditionExpression == nil || kind == writeUpdate && req.UpdateExpression == nil {
			return nil, invalid("1 validation error detected: a required expression is missing in member %d of 'transactItems'", i+1)
		}
		if writes[i], err = s.prepare(kind, req); err != nil {
			return nil, err
		}
	}
	return writes, nil
}

// transactOnce runs the transaction unless its token says that it has run already; then it reads the items instead, and
// that is what is reported.
func (s *Server) transactOnce(req transactWriteRequest, writes []*write) (map[*table]*usage, error) {
	if req.ClientRequestToken == "" {
		return s.transact(writes, nil)
	}
	sum, err := digest(req.TransactItems)
	if err != nil {
		return nil, err
	}
	now := s.now()
	replay, err := s.tokens.claim(req.ClientRequestToken, sum, now)
	if err != nil {
		return nil, err
	}
	if replay {
		return s.reread(writes)
	}
	spent := &spentToken{Token: req.ClientRequestToken, Digest: sum, Expires: now.Add(tokenLife)}
	used, err := s.transact(writes, spent)
	if err != nil {
		spent = nil
	}
	s.tokens.settle(req.ClientRequestToken, spent)
	return used, err
}

// transact evaluates all writes on the same state and commits all of them or none.
func (s *Server) transact(writes []*write, spent *spentToken) (map[*table]*usage, error) {
	unlock, err := lockAll(tablesOf(writes))
	if err != nil {
		return nil, err
	}
	defer unlock()
	reasons := make([]reason, len(writes))
	bound := bindAll(writes, reasons)
	if err := checkDistinct(writes); bound && err != nil {
		return nil, err
	}
	changes, err := evaluateAll(writes, reasons)
	if err != nil {
		return nil, err
	}
	if err := cancelled(reasons); err != nil {
		billCancelled(changes)
		return nil, err
	}
	if err := checkTransactSize(changes); err != nil {
		return nil, err
	}
	used, err := s.commit(changes, spent)
	if err != nil {
		return nil, err
	}
	for t, u := range used {
		u.own *= 2 // once to prepare and once to commit; index entries are written once
		t.billed.bill(*u)
	}
	return used, nil
}

func tablesOf(writes []*write) []*table {
	tables := make([]*table, len(writes))
	for i, w := range writes {
		tables[i] = w.t
	}
	return tables
}

// bindAll notes schema errors as reasons and says whether there were none.
func bindAll(writes []*write, reasons []reason) bool {
	fine := true
	for i, w := range writes {
		reasons[i].code = "None"
		if err := w.bind(); err != nil {
			reasons[i] = reasonOf(err)
			fine = false
		}
	}
	return fine
}

// evaluateAll computes the changes of all writes that are bound and notes what is wrong with them. Errors that are not the
// caller's end it.
func evaluateAll(writes []*write, reasons []reason) ([]change, error) {
	changes := make([]change, len(writes))
	for i, w := range writes {
		changes[i].t = w.t
		if reasons[i].code != "None" {
			continue
		}
		var err error
		if changes[i], err = w.evaluate(); err != nil {
			var api *apiError
			if !errors.As(err, &api) {
				return nil, err
			}
			reasons[i] = reasonOf(api)
		}
	}
	return changes, nil
}

func reasonOf(err error) reason {
	var api *apiError
	if !errors.As(err, &api) {
		return reason{code: "ValidationError", message: err.Error()}
	}
	code := "ValidationError"
	if api.code == "ConditionalCheckFailedException" {
		code = "ConditionalCheckFailed"
	}
	return reason{code: code, message: api.message, item: api.item}
}

// cancelled is the answer when any reason is not None.
func cancelled(reasons []reason) error {
	codes := make([]string, len(reasons))
	failed := false
	for i, r := range reasons {
		codes[i] = r.code
		failed = failed || r.code != "None"
	}
	if !failed {
		return nil
	}
	return &apiError{
		code:    "TransactionCanceledException",
		message: "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]",
		reasons: reasons,
	}
}

// billCancelled charges what a cancelled transaction costs: the preparing write of every item, by the size it has.
func billCancelled(changes []change) {
	for _, c := range changes {
		c.t.billed.bill(usage{own: writeUnits(c.oldSize)})
	}
}

func checkDistinct(writes []*write) error {
	type place struct {
		t   *table
		key string
	}
	seen := make(map[place]bool, len(writes))
	for _, w := range writes {
		at := place{w.t, w.key}
		if seen[at] {
			return invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[at] = true
	}
	return nil
}

var errTransactTooBig = invalid("The aggregate size of the items in the transaction cannot exceed 4 MB")

func checkTransactSize(changes []change) error {
	total := 0
	for _, c := range changes {
		total += max(c.newSize, c.oldSize)
	}
	if total > maxTransactBytes {
		return errTransactTooBig
	}
	return nil
}

// reread is what a repeated transaction does: nothing but read its items.
func (s *Server) reread(writes []*write) (map[*table]*usage, error) {
	used := map[*table]*usage{}
	for _, w := range writes {
		if err := w.bind(); err != nil {
			return nil, err
		}
		if err := w.t.rlock(); err != nil {
			return nil, err
		}
		found, _ := w.t.rows.get(w.key)
		w.t.mu.RUnlock()
		addRead(used, w.t, 2*readUnits(found.size, true))
	}
	billReads(used)
	return used, nil
}

func addRead(used map[*table]*usage, t *table, units float64) {
	if used[t] == nil {
		used[t] = &usage{reading: true}
	}
	used[t].own += units
}

func billReads(used map[*table]*usage) {
	for t, u := range used {
		t.billed.bill(*u)
	}
}

func (s *Server) transactGetItems(body []byte) ([]byte, error) {
	var req struct {
		TransactItems          []struct{ Get *getRequest }
		ReturnConsumedCapacity string
	}
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	if err := checkTransactCount(len(req.TransactItems)); err != nil {
		return nil, err
	}
	requests := make([]*getRequest, len(req.TransactItems))
	for i, one := range req.TransactItems {
		if requests[i] = one.Get; one.Get == nil {
			return nil, invalid("1 validation error detected: Value null at 'transactItems.%d.member.get' failed to satisfy constraint: Member must not be null", i+1)
		}
	}
	gets, err := s.prepareGets(requests)
	if err != nil {
		return nil, err
	}
	found, err := readTogether(gets)
	if err != nil {
		return nil, err
	}
	used := map[*table]*usage{}
	total := 0
	for i, g := range gets {
		total += found[i].size
		addRead(used, g.t, 2*readUnits(found[i].size, true))
	}
	if total > maxTransactBytes {
		return nil, errTransactTooBig
	}
	billReads(used)
	return transactGetReply(gets, found, used, req.ReturnConsumedCapacity)
}

// prepareGets understands all parts; a key that does not fit its table cancels the transaction.
func (s *Server) prepareGets(requests []*getRequest) ([]*get, error) {
	gets := make([]*get, len(requests))
	reasons := make([]reason, len(requests))
	for i, req := range requests {
		var err error
		if gets[i], err = s.prepareGet(req); err != nil {
			return nil, err
		}
		reasons[i].code = "None"
		if err := gets[i].bind(req.Key); err != nil {
			reasons[i] = reasonOf(err)
		}
	}
	return gets, cancelled(reasons)
}

// readTogether reads all items from one moment.
func readTogether(gets []*get) ([]row, error) {
	seen := map[string]bool{}
	tables := make([]*table, len(gets))
	for i, g := range gets {
		tables[i] = g.t
		at := g.t.name + "\x00" + g.key
		if seen[at] {
			return nil, invalid("Transaction request cannot include multiple operations on one item")
		}
		seen[at] = true
	}
	unlock, err := lockAll(tables)
	if err != nil {
		return nil, err
	}
	defer unlock()
	found := make([]row, len(gets))
	for i, g := range gets {
		found[i], _ = g.t.rows.get(g.key)
	}
	return found, nil
}

func transactGetReply(gets []*get, found []row, used map[*table]*usage, detail string) ([]byte, error) {
	r := newReply()
	r.key("Responses")
	r.b = append(r.b, '[')
	for i, g := range gets {
		if i > 0 {
			r.b = append(r.b, ',')
		}
		one := reply{b: append(r.b, '{'), first: true}
		if found[i].item != nil {
			one.item("Item", g.shown(found[i].item))
		}
		r.b = append(one.b, '}')
	}
	r.b = append(r.b, ']')
	err := r.capacities(used, detail, true)
	return r.done(), err
}
