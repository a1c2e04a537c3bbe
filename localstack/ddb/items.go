package ddb

// getItem reads one item.
func (s *Server) getItem(body []byte) ([]byte, error) {
	var req getRequest
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	g, err := s.prepareGet(&req)
	if err != nil {
		return nil, err
	}
	if err := g.bind(req.Key); err != nil {
		return nil, err
	}
	if err := g.t.rlock(); err != nil {
		return nil, err
	}
	found, ok := g.t.rows.get(g.key)
	g.t.mu.RUnlock()
	used := usage{reading: true, own: readUnits(found.size, req.ConsistentRead)}
	g.t.billed.bill(used)
	r := newReply()
	if ok {
		r.item("Item", g.shown(found.item))
	}
	err = r.capacity(used, g.t.name, req.ReturnConsumedCapacity)
	return r.done(), err
}

// getRequest has the parameters of GetItem, and of the parts of TransactGetItems.
type getRequest struct {
	TableName                string
	Key                      item
	ConsistentRead           bool
	ProjectionExpression     *string
	ExpressionAttributeNames map[string]string
	ReturnConsumedCapacity   string
	AttributesToGet          []string // from before expressions; refused
}

// get is a getRequest understood.
type get struct {
	t          *table
	key        string
	projection *pathTree // nil for everything
}

func (s *Server) prepareGet(req *getRequest) (*get, error) {
	if req.AttributesToGet != nil {
		return nil, invalid("AttributesToGet is not implemented by this emulator; use ProjectionExpression")
	}
	var g get
	var err error
	if g.projection, err = projectionOf(req.ProjectionExpression, req.ExpressionAttributeNames); err != nil {
		return nil, err
	}
	g.t, err = s.table(req.TableName)
	return &g, err
}

// projectionOf parses a projection that is the only expression of its operation.
func projectionOf(src *string, names map[string]string) (tree *pathTree, err error) {
	ph, err := newPlaceholders(names, nil)
	if err != nil {
		return nil, err
	}
	if src != nil {
		if tree, err = parseProjection(*src, ph); err != nil {
			return nil, err
		}
	}
	return tree, ph.checkUsed(src != nil)
}

func (g *get) bind(key item) error {
	if err := g.t.schema.check(key); err != nil {
		return err
	}
	g.key = g.t.schema.encode(key)
	return nil
}

func (g *get) shown(it item) item {
	if g.projection == nil {
		return it
	}
	return g.projection.project(it)
}

func (s *Server) putItem(body []byte) ([]byte, error)    { return s.writeOne(writePut, body) }
func (s *Server) updateItem(body []byte) ([]byte, error) { return s.writeOne(writeUpdate, body) }
func (s *Server) deleteItem(body []byte) ([]byte, error) { return s.writeOne(writeDelete, body) }

// writeOne is PutItem, UpdateItem or DeleteItem.
func (s *Server) writeOne(kind writeKind, body []byte) ([]byte, error) {
	var req writeRequest
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	if err := checkReturnValues(kind, req.ReturnValues); err != nil {
		return nil, err
	}
	w, err := s.prepare(kind, &req)
	if err != nil {
		return nil, err
	}
	if err := w.bind(); err != nil {
		return nil, err
	}
	c, used, err := s.execute(w)
	if err != nil {
		return nil, err
	}
	r := newReply()
	if shown := returned(req.ReturnValues, w.update, c); shown != nil {
		r.item("Attributes", shown)
	}
	err = r.capacity(used, w.t.name, req.ReturnConsumedCapacity)
	return r.done(), err
}

// execute evaluates and commits one write under the table's lock, and bills it whether or not its condition holds.
func (s *Server) execute(w *write) (change, usage, error) {
	if err := w.t.lock(); err != nil {
		return change{}, usage{}, err
	}
	defer w.t.mu.Unlock()
	c, err := w.evaluate()
	if err != nil {
		w.t.billed.bill(usage{own: writeUnits(c.oldSize)})
		return c, usage{}, err
	}
	used, err := s.commit([]change{c}, nil)
	if err != nil {
		return c, usage{}, err
	}
	w.t.billed.bill(*used[w.t])
	return c, *used[w.t], nil
}

func checkReturnValues(kind writeKind, want string) error {
	switch want {
	case "", "NONE", "ALL_OLD":
		return nil
	case "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW":
		if kind == writeUpdate {
			return nil
		}
		return invalid("Return values set to invalid value")
	}
	return invalid("1 validation error detected: Value '%s' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]", want)
}

// returned picks what ReturnValues asks for; nil when there is nothing to show.
func returned(want string, u *update, c change) item {
	switch want {
	case "ALL_OLD":
		return c.old
	case "ALL_NEW":
		return c.new
	case "UPDATED_OLD":
		return touched(u, c.old)
	case "UPDATED_NEW":
		return touched(u, c.new)
	}
	return nil
}

// touched cuts an item down to the paths an update names.
func touched(u *update, it item) item {
	if u == nil || it == nil {
		return nil
	}
	if kept := u.paths.project(it); len(kept) > 0 {
		return kept
	}
	return nil
}
