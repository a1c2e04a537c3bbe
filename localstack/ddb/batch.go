package ddb

import "maps"

// Limits of batches.
const (
	maxBatchGets    = 100
	maxBatchWrites  = 25
	maxBatchReplied = 16 << 20
)

type batchGetTable struct {
	Keys                     []item
	ConsistentRead           bool              `json:",omitempty"`
	ProjectionExpression     *string           `json:",omitempty"`
	ExpressionAttributeNames map[string]string `json:",omitempty"`
	AttributesToGet          []string          `json:",omitempty"`
}

func (s *Server) batchGetItem(body []byte) ([]byte, error) {
	var req struct {
		RequestItems           map[string]batchGetTable
		ReturnConsumedCapacity string
	}
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	count := 0
	for _, one := range req.RequestItems {
		count += len(one.Keys)
	}
	if count == 0 {
		return nil, invalid("1 validation error detected: Value at 'requestItems' failed to satisfy constraint: Member must have length greater than or equal to 1")
	}
	if count > maxBatchGets {
		return nil, invalid("Too many items requested for the BatchGetItem call")
	}
	b := batchGet{s: s, used: map[*table]*usage{}, found: map[string][]item{}, left: map[string]batchGetTable{}}
	for _, name := range sortedKeys(req.RequestItems) {
		if err := b.read(name, req.RequestItems[name]); err != nil {
			return nil, err
		}
	}
	billReads(b.used)
	return b.reply(req.ReturnConsumedCapacity)
}

// batchGet gathers what a BatchGetItem has read; what does not fit into 16 MB is left for the caller to ask again.
type batchGet struct {
	s     *Server
	used  map[*table]*usage
	found map[string][]item
	left  map[string]batchGetTable
	bytes int
}

func (b *batchGet) read(name string, one batchGetTable) error {
	g, err := b.s.prepareGet(&getRequest{TableName: name, ProjectionExpression: one.ProjectionExpression,
		ExpressionAttributeNames: one.ExpressionAttributeNames, AttributesToGet: one.AttributesToGet})
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	b.found[name] = []item{}
	for _, key := range one.Keys {
		if err := g.bind(key); err != nil {
			return err
		}
		if seen[g.key] {
			return invalid("Provided list of item keys contains duplicates")
		}
		seen[g.key] = true
		if err := b.readKey(name, one, g, key); err != nil {
			return err
		}
	}
	return nil
}

func (b *batchGet) readKey(name string, one batchGetTable, g *get, key item) error {
	if err := g.t.rlock(); err != nil {
		return err
	}
	found, ok := g.t.rows.get(g.key)
	g.t.mu.RUnlock()
	if b.bytes+found.size > maxBatchReplied {
		one.Keys = append(b.left[name].Keys, key)
		b.left[name] = one
		return nil
	}
	b.bytes += found.size
	addRead(b.used, g.t, readUnits(found.size, one.ConsistentRead))
	if ok {
		b.found[name] = append(b.found[name], g.shown(found.item))
	}
	return nil
}

func (b *batchGet) reply(detail string) ([]byte, error) {
	r := newReply()
	r.key("Responses")
	responses := reply{b: append(r.b, '{'), first: true}
	for _, name := range sortedKeys(b.found) {
		responses.items(name, b.found[name])
	}
	r.b = append(responses.b, '}')
	if err := r.json("UnprocessedKeys", b.left); err != nil {
		return nil, err
	}
	err := r.capacities(b.used, detail, false)
	return r.done(), err
}

// batchWrite is one element of BatchWriteItem.
type batchWrite struct {
	PutRequest    *struct{ Item item }
	DeleteRequest *struct{ Key item }
}

func (s *Server) batchWriteItem(body []byte) ([]byte, error) {
	var req struct {
		RequestItems           map[string][]batchWrite
		ReturnConsumedCapacity string
	}
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	writes, err := s.prepareBatch(req.RequestItems)
	if err != nil {
		return nil, err
	}
	used := map[*table]*usage{}
	for _, w := range writes {
		_, cost, err := s.execute(w)
		if err != nil {
			return nil, err
		}
		if used[w.t] == nil {
			used[w.t] = &usage{}
		}
		used[w.t].add(cost)
	}
	r := newReply()
	r.key("UnprocessedItems")
	r.b = append(r.b, "{}"...)
	err = r.capacities(used, req.ReturnConsumedCapacity, false)
	return r.done(), err
}

// prepareBatch checks all writes before any is done. Each is then a write of its own: a batch is not a transaction.
func (s *Server) prepareBatch(tables map[string][]batchWrite) ([]*write, error) {
	count := 0
	for list := range maps.Values(tables) {
		count += len(list)
	}
	if count == 0 || count > maxBatchWrites {
		return nil, invalid("1 validation error detected: Value at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: [Member must have length less than or equal to %d, Member must have length greater than or equal to 1]", maxBatchWrites)
	}
	var writes []*write
	for _, name := range sortedKeys(tables) {
		for _, one := range tables[name] {
			w, err := s.prepareBatchWrite(name, one)
			if err != nil {
				return nil, err
			}
			writes = append(writes, w)
		}
	}
	if checkDistinct(writes) != nil {
		return nil, invalid("Provided list of item keys contains duplicates")
	}
	return writes, nil
}

func (s *Server) prepareBatchWrite(name string, one batchWrite) (*write, error) {
	kind, req := writePut, &writeRequest{TableName: name}
	switch {
	case (one.PutRequest == nil) == (one.DeleteRequest == nil):
		return nil, invalid("Supplied AttributeValue has more than one datatypes set, must contain exactly one of PutRequest and DeleteRequest")
	case one.PutRequest != nil:
		req.Item = one.PutRequest.Item
	default:
		kind, req.Key = writeDelete, one.DeleteRequest.Key
	}
	w, err := s.prepare(kind, req)
	if err != nil {
		return nil, err
	}
	if err := w.bind(); err != nil {
		return nil, err
	}
	if kind == writePut && itemSize(req.Item) > maxItemBytes {
		return nil, errItemTooBig
	}
	return w, nil
}
