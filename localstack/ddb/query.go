package ddb

import (
	"maps"
	"math"
	"strconv"
)

// maxPageBytes is how much Query and Scan read for one page.
const maxPageBytes = 1 << 20

// readRequest has the parameters of Query and Scan.
type readRequest struct {
	TableName                 string
	IndexName                 string
	KeyConditionExpression    *string
	FilterExpression          *string
	ProjectionExpression      *string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues item
	Limit                     *int
	ExclusiveStartKey         item
	ScanIndexForward          *bool
	Select                    string
	ConsistentRead            bool
	ReturnConsumedCapacity    string
	Segment                   *int
	TotalSegments             *int

	// From before expressions; refused.
	KeyConditions, QueryFilter, ScanFilter *struct{}
	AttributesToGet                        []string
	ConditionalOperator                    *string
}

// read is a readRequest understood.
type read struct {
	t          *table
	index      *index // nil for the table itself
	schema     keySchema
	within     keyRange
	backward   bool
	filter     condition
	projection *pathTree
	limit      int
	start      string // encoded ExclusiveStartKey
	countOnly  bool
	consistent bool
}

func (s *Server) query(body []byte) ([]byte, error) {
	var req readRequest
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	if req.KeyConditionExpression == nil {
		return nil, invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
	}
	return s.read(&req, func(r *read, ph *placeholders) (err error) {
		r.backward = req.ScanIndexForward != nil && !*req.ScanIndexForward
		if r.within, err = parseKeyCondition(*req.KeyConditionExpression, ph, r.schema); err != nil {
			return err
		}
		return r.checkFilterKeys()
	})
}

func (s *Server) scan(body []byte) ([]byte, error) {
	var req readRequest
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	return s.read(&req, func(r *read, _ *placeholders) (err error) {
		r.within, err = req.segment()
		return err
	})
}

// segment is the part of the key space one of several parallel scans reads: a range of partition hashes.
func (req *readRequest) segment() (keyRange, error) {
	if req.TotalSegments == nil && req.Segment == nil {
		return keyRange{}, nil
	}
	if req.TotalSegments == nil || req.Segment == nil {
		return keyRange{}, invalid("The Segment and TotalSegments parameters must be given together")
	}
	n, total := *req.Segment, *req.TotalSegments
	if total < 1 || total > 1_000_000 || n < 0 || n >= total {
		return keyRange{}, invalid("The Segment parameter is zero-based and must be less than parameter TotalSegments: Segment: %d is not less than TotalSegments: %d", n, total)
	}
	r := keyRange{low: hashBound(n, total)}
	if n+1 < total {
		r.high = hashBound(n+1, total)
	}
	return r, nil
}

// hashBound is the first key of segment n.
func hashBound(n, total int) string {
	h := uint32(uint64(n) * (math.MaxUint32 + 1) / uint64(total))
	return string([]byte{byte(h >> 24), byte(h >> 16), byte(h >> 8), byte(h)})
}

// read answers a Query or Scan, whose own part of the preparation is plan.
func (s *Server) read(req *readRequest, plan func(*read, *placeholders) error) ([]byte, error) {
	r, p, used, err := s.readPage(req, plan)
	if err != nil {
		return nil, err
	}
	return r.reply(p, used, req.ReturnConsumedCapacity)
}

// readPage reads one page and bills it.
func (s *Server) readPage(req *readRequest, plan func(*read, *placeholders) error) (*read, page, usage, error) {
	t, err := s.table(req.TableName)
	if err != nil {
		return nil, page{}, usage{}, err
	}
	if err := t.rlock(); err != nil {
		return nil, page{}, usage{}, err
	}
	defer t.mu.RUnlock()
	r, ph, err := req.understand(t)
	if err == nil {
		err = plan(r, ph)
	}
	if err == nil {
		err = ph.checkUsed(req.KeyConditionExpression != nil || req.FilterExpression != nil || r.projection != nil)
	}
	if err == nil {
		err = r.startAfter(req.ExclusiveStartKey)
	}
	if err != nil {
		return nil, page{}, usage{}, err
	}
	p := r.page()
	used := r.cost(p)
	t.billed.bill(used)
	return r, p, used, nil
}

// understand does what Query and Scan have in common. The caller holds t.mu.
func (req *readRequest) understand(t *table) (*read, *placeholders, error) {
	if req.KeyConditions != nil || req.QueryFilter != nil || req.ScanFilter != nil || req.AttributesToGet != nil || req.ConditionalOperator != nil {
		return nil, nil, invalid("KeyConditions, filters and AttributesToGet are not implemented by this emulator; use expressions")
	}
	r := &read{t: t, schema: t.schema, limit: math.MaxInt, consistent: req.ConsistentRead}
	if req.Limit != nil {
		if r.limit = *req.Limit; r.limit < 1 {
			return nil, nil, invalid("1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value greater than or equal to 1", r.limit)
		}
	}
	var err error
	if req.IndexName != "" {
		if r.index, err = t.index(req.IndexName); err != nil {
			return nil, nil, err
		}
		if req.ConsistentRead {
			return nil, nil, invalid("Consistent reads are not supported on global secondary indexes")
		}
		r.schema = r.index.schema
	}
	ph, err := newPlaceholders(req.ExpressionAttributeNames, req.ExpressionAttributeValues)
	if err != nil {
		return nil, nil, err
	}
	if req.FilterExpression != nil {
		if r.filter, err = parseCondition("FilterExpression", *req.FilterExpression, ph); err != nil {
			return nil, nil, err
		}
	}
	if req.ProjectionExpression != nil {
		if r.projection, err = parseProjection(*req.ProjectionExpression, ph); err != nil {
			return nil, nil, err
		}
	}
	return r, ph, r.selecting(req.Select)
}

// selecting checks Select against the index and the projection.
func (r *read) selecting(want string) error {
	switch want {
	case "", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES", "COUNT":
	default:
		return invalid("1 validation error detected: Value '%s' at 'select' failed to satisfy constraint: Member must satisfy enum value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]", want)
	}
	r.countOnly = want == "COUNT"
	switch {
	case r.projection != nil && want != "" && want != "SPECIFIC_ATTRIBUTES":
		return invalid("Cannot specify the ProjectionExpression when choosing to get %s", want)
	case r.projection == nil && want == "SPECIFIC_ATTRIBUTES":
		return invalid("Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES")
	case r.index == nil && want == "ALL_PROJECTED_ATTRIBUTES":
		return invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName")
	case r.index == nil || r.index.all:
		return nil
	case want == "ALL_ATTRIBUTES":
		return invalidValue("Select type ALL_ATTRIBUTES is not supported for global secondary index %s because its projection type is not ALL", r.index.name)
	case r.projection == nil:
		return nil
	}
	for _, name := range sortedKeys(r.projection.fields) {
		if !r.index.covers[name] {
			return invalidValue("Global secondary index %s does not project [%s]", r.index.name, name)
		}
	}
	return nil
}

// checkFilterKeys refuses a Query's filter on the attributes of the key queried by.
func (r *read) checkFilterKeys() (err error) {
	walkOperands(r.filter, func(o operand) {
		if at, ok := o.(path); ok && r.schema.has(at[0].name) && err == nil {
			err = invalid("Filter Expression can only contain non-primary key attributes: Primary key attribute: %s", at[0].name)
		}
	})
	return err
}

// startAfter takes an ExclusiveStartKey: the table's key, and for an index also the index's.
func (r *read) startAfter(key item) error {
	if key == nil {
		return nil
	}
	want := map[string]kind{}
	for _, part := range append(r.schema.parts(), r.t.schema.parts()...) {
		want[part.name] = part.kind
	}
	if len(key) != len(want) {
		return invalid("The provided starting key is invalid")
	}
	for name, k := range want {
		if v := key[name]; v == nil || v.kind() != k || emptyKey(v) != "" {
			return invalid("The provided starting key is invalid: The provided key element does not match the schema")
		}
	}
	r.start = r.schema.encode(key)
	if r.index != nil {
		r.start += r.t.schema.encode(key)
	}
	if !r.inside(r.start) {
		return invalid("The provided starting key is outside query boundaries based on provided conditions")
	}
	return nil
}

// page is what one Query or Scan has read.
type page struct {
	items   []item
	count   int
	scanned int
	bytes   int
	last    item // key of the last item read, when there may be more
}

func (r *read) page() page {
	var p page
	rows := r.t.rows
	if r.index != nil {
		rows = r.index.rows
	}
	for n := r.first(rows); n != nil && r.inside(n.key); n = r.next(n) {
		if p.scanned == r.limit || p.scanned > 0 && p.bytes+n.size > maxPageBytes {
			return p
		}
		p.scanned++
		p.bytes += n.size
		p.last = n.item
		if r.filter == nil || r.filter.holds(n.item) {
			p.count++
			p.items = append(p.items, n.item)
		}
	}
	if p.scanned < r.limit {
		p.last = nil
	}
	return p
}

func (r *read) first(rows *ordered) *node {
	if r.backward {
		if r.start != "" {
			return rows.lastBefore(r.start)
		}
		return rows.lastBefore(r.within.high)
	}
	if r.start != "" {
		return rows.firstFrom(r.start + "\x00")
	}
	return rows.firstFrom(r.within.low)
}

func (r *read) next(n *node) *node {
	if r.backward {
		return n.prev
	}
	return n.next[0]
}

func (r *read) inside(key string) bool {
	return key >= r.within.low && (r.within.high == "" || key < r.within.high)
}

func (r *read) cost(p page) usage {
	units := readUnits(p.bytes, r.consistent)
	u := usage{reading: true}
	if r.index != nil {
		u.addIndex(r.index.name, units)
	} else {
		u.own = units
	}
	return u
}

func (r *read) reply(p page, used usage, detail string) ([]byte, error) {
	out := newReply()
	if !r.countOnly {
		if r.projection != nil {
			for i, it := range p.items {
				p.items[i] = r.projection.project(it)
			}
		}
		out.items("Items", p.items)
	}
	out.key("Count")
	out.b = strconv.AppendInt(out.b, int64(p.count), 10)
	out.key("ScannedCount")
	out.b = strconv.AppendInt(out.b, int64(p.scanned), 10)
	if p.last != nil {
		out.item("LastEvaluatedKey", r.lastKey(p))
	}
	err := out.capacity(used, r.t.name, detail)
	return out.done(), err
}

// lastKey is the key by which the page after p is asked for: the table's, and for an index also the index's.
func (r *read) lastKey(p page) item {
	key := r.t.schema.of(p.last)
	if r.index != nil {
		maps.Copy(key, r.schema.of(p.last))
	}
	return key
}
