package ddb

import (
	"encoding/json"
	"fmt"
)

// Snapshot returns a table as it is now, definition and items. The bytes mean something to Restore only.
func (s *Server) Snapshot(table string) ([]byte, error) {
	t, err := s.table(table)
	if err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", table, err)
	}
	b, err := json.Marshal(t.contents())
	if err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", table, err)
	}
	return b, nil
}

func (t *table) contents() contents {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c := contents{Definition: t.def, Items: make([]item, 0, t.rows.len())}
	for n := t.rows.firstFrom(""); n != nil; n = n.next[0] {
		c.Items = append(c.Items, n.item)
	}
	return c
}

// Restore makes the named table what snapshot says, whether or not it exists and under whatever name the snapshot was taken.
func (s *Server) Restore(table string, snapshot []byte) error {
	var c contents
	if err := json.Unmarshal(snapshot, &c); err != nil {
		return fmt.Errorf("restore %s: %w", table, err)
	}
	c.Definition.Name = table
	if err := c.Definition.check(); err != nil {
		return fmt.Errorf("restore %s: %w", table, err)
	}
	fresh := c.table()
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.tables[table]; old != nil {
		old.mu.Lock()
		defer old.mu.Unlock()
		old.dropped = true
	}
	if err := s.log.append(entry{Replace: &c}); err != nil {
		return fmt.Errorf("restore %s: %w", table, err)
	}
	s.tables[table] = fresh
	return nil
}

// table builds a table from its contents.
func (c *contents) table() *table {
	t := newTable(c.Definition)
	for _, it := range c.Items {
		t.replayWrite(entryWrite{Put: it})
	}
	return t
}
