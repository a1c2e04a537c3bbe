package ddb

import (
	"cmp"
	"maps"
	"slices"
)

// writeKind is what a write does with its item.
type writeKind int

const (
	writePut writeKind = iota
	writeUpdate
	writeDelete
	writeCheck // ConditionCheck: nothing
)

// writeRequest has the parameters of PutItem, UpdateItem and DeleteItem, and of the parts of a transaction.
type writeRequest struct {
	TableName                           string
	Item                                item
	Key                                 item
	UpdateExpression                    *string
	ConditionExpression                 *string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           item
	ReturnValues                        string
	ReturnConsumedCapacity              string
	ReturnValuesOnConditionCheckFailure string

	// From before expressions; refused.
	Expected            *struct{}
	AttributeUpdates    *struct{}
	ConditionalOperator *string
}

// write is a request understood: its expressions parsed, its table found.
type write struct {
	kind      writeKind
	t         *table
	key       string
	keyValues item // empty for a put
	put       item
	update    *update
	cond      condition
	showOld   bool // ReturnValuesOnConditionCheckFailure is ALL_OLD
}

// prepare does all that needs neither the table's lock nor its key schema.
func (s *Server) prepare(kind writeKind, req *writeRequest) (*write, error) {
	if req.Expected != nil || req.AttributeUpdates != nil || req.ConditionalOperator != nil {
		return nil, invalid("Expected, AttributeUpdates and ConditionalOperator are not implemented by this emulator; use expressions")
	}
	w := &write{kind: kind, keyValues: req.Key, put: req.Item, showOld: req.ReturnValuesOnConditionCheckFailure == "ALL_OLD"}
	ph, err := newPlaceholders(req.ExpressionAttributeNames, req.ExpressionAttributeValues)
	if err != nil {
		return nil, err
	}
	if req.UpdateExpression != nil {
		if w.update, err = parseUpdate(*req.UpdateExpression, ph); err != nil {
			return nil, err
		}
	}
	if req.ConditionExpression != nil {
		if w.cond, err = parseCondition("ConditionExpression", *req.ConditionExpression, ph); err != nil {
			return nil, err
		}
	}
	if err := ph.checkUsed(w.update != nil || w.cond != nil); err != nil {
		return nil, err
	}
	if w.t, err = s.table(req.TableName); err != nil {
		return nil, err
	}
	return w, nil
}

// bind checks the request against the table's key schema and finds the item's position.
func (w *write) bind() error {
	schema := w.t.schema
	if w.kind == writePut {
		if err := schema.checkItem(w.put); err != nil {
			return err
		}
		w.key = schema.encode(w.put)
		return nil
	}
	if err := schema.check(w.keyValues); err != nil {
		return err
	}
	w.key = schema.encode(w.keyValues)
	if w.update == nil {
		return nil
	}
	for _, a := range w.update.actions {
		if schema.has(a.at[0].name) {
			return invalidValue("Cannot update attribute %s. This attribute is part of the key", a.at[0].name)
		}
	}
	return nil
}

// evaluate checks the condition and computes the change; the caller holds the table's lock. The change has the old item
// even when there is an error.
func (w *write) evaluate() (change, error) {
	c := change{t: w.t, key: w.key}
	if old, ok := w.t.rows.get(w.key); ok {
		c.old, c.oldSize = old.item, old.size
	}
	if w.cond != nil && !w.cond.holds(c.old) {
		var shown item
		if w.showOld {
			shown = c.old
		}
		return c, conditionFailed(shown)
	}
	switch w.kind {
	case writeCheck:
		c.new, c.newSize = c.old, c.oldSize
		return c, nil
	case writeDelete:
		return c, nil
	}
	return c, w.compute(&c)
}

// compute fills in the new item of a put or update.
func (w *write) compute(c *change) (err error) {
	tooBig := errItemTooBig
	c.new = w.put
	if w.kind == writeUpdate {
		tooBig = errUpdateTooBig
		if c.new, err = w.updated(c.old); err != nil {
			return err
		}
	}
	if c.newSize = itemSize(c.new); c.newSize > maxItemBytes {
		return tooBig
	}
	return w.t.checkIndexKeys(c.new, w.kind == writeUpdate)
}

// updated applies the update to the old item, or to one that has only its key.
func (w *write) updated(old item) (item, error) {
	if old == nil {
		old = maps.Clone(w.keyValues)
	}
	if w.update == nil {
		return old, nil
	}
	return w.update.apply(old)
}

// commit logs and applies changes as one, whose tables the caller has locked. It returns what each table's changes cost
// before any doubling for a transaction.
func (s *Server) commit(changes []change, token *spentToken) (map[*table]*usage, error) {
	if s.log != nil {
		if err := s.log.append(entry{Writes: logged(changes), Token: token}); err != nil {
			return nil, err
		}
	}
	used := map[*table]*usage{}
	for i := range changes {
		c := &changes[i]
		cost := c.apply()
		if used[c.t] == nil {
			used[c.t] = &usage{}
		}
		used[c.t].add(cost)
	}
	return used, nil
}

// logged leaves out changes that change nothing.
func logged(changes []change) []entryWrite {
	var writes []entryWrite
	for _, c := range changes {
		switch {
		case c.new == nil && c.old != nil:
			writes = append(writes, entryWrite{Table: c.t.name, Delete: c.t.schema.of(c.old)})
		case c.new != nil && (c.old == nil || !equalItems(c.old, c.new)):
			writes = append(writes, entryWrite{Table: c.t.name, Put: c.new})
		}
	}
	return writes
}

// lockAll locks tables in the order of their names, so that two transactions cannot wait for each other.
func lockAll(tables []*table) (unlock func(), err error) {
	slices.SortFunc(tables, func(a, b *table) int { return cmp.Compare(a.name, b.name) })
	tables = slices.Compact(tables)
	unlock = func() {
		for _, t := range tables {
			t.mu.Unlock()
		}
	}
	for _, t := range tables {
		t.mu.Lock()
	}
	for _, t := range tables {
		if t.dropped {
			unlock()
			return nil, noSuchTable()
		}
	}
	return unlock, nil
}

func sortedTables[V any](used map[*table]V) []*table {
	return slices.SortedFunc(maps.Keys(used), func(a, b *table) int { return cmp.Compare(a.name, b.name) })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
