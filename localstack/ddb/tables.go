package ddb

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// arnPrefix is the account and region every ARN names.
const arnPrefix = "arn:aws:dynamodb:us-east-1:000000000000:table/"

// tableName takes a table's name out of its ARN; anything else is a name already.
func tableName(nameOrARN string) string {
	if strings.HasPrefix(nameOrARN, "arn:") {
		_, nameOrARN, _ = strings.Cut(nameOrARN, ":table/")
		nameOrARN, _, _ = strings.Cut(nameOrARN, "/")
	}
	return nameOrARN
}

// tableRequest has the parameters of CreateTable and UpdateTable that mean something here; others are accepted unread.
type tableRequest struct {
	TableName                   string
	KeySchema                   []keyElement
	AttributeDefinitions        []attributeDef
	BillingMode                 string
	ProvisionedThroughput       *throughput
	GlobalSecondaryIndexes      []indexDef
	LocalSecondaryIndexes       []json.RawMessage
	StreamSpecification         *streamSpec
	DeletionProtectionEnabled   *bool
	GlobalSecondaryIndexUpdates []indexUpdate
}

type indexUpdate struct {
	Create *indexDef
	Update *struct {
		IndexName             string
		ProvisionedThroughput *throughput
	}
	Delete *struct{ IndexName string }
}

func (s *Server) createTable(body []byte) ([]byte, error) {
	var req tableRequest
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	if len(req.LocalSecondaryIndexes) > 0 {
		return nil, invalid("Local secondary indexes are not implemented by this emulator")
	}
	def := definition{
		Name: tableName(req.TableName), ID: ulid.Make().String(), Created: s.now(), KeySchema: req.KeySchema, Attributes: req.AttributeDefinitions,
		BillingMode: req.BillingMode, Throughput: req.ProvisionedThroughput, Indexes: req.GlobalSecondaryIndexes,
	}
	if def.BillingMode == "" {
		def.BillingMode = "PROVISIONED"
	}
	if err := req.settings(&def, s.now()); err != nil {
		return nil, err
	}
	if err := def.check(); err != nil {
		return nil, err
	}
	t := newTable(def)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables[def.Name] != nil {
		return nil, &apiError{code: "ResourceInUseException", message: "Table already exists: " + def.Name}
	}
	if err := s.log.append(entry{Table: &def}); err != nil {
		return nil, err
	}
	s.tables[def.Name] = t
	return tableReply("TableDescription", t, "CREATING")
}

// settings applies what CreateTable and UpdateTable have in common.
func (req *tableRequest) settings(def *definition, now time.Time) error {
	if req.DeletionProtectionEnabled != nil {
		def.DeletionProtection = *req.DeletionProtectionEnabled
	}
	stream := req.StreamSpecification
	switch {
	case stream == nil:
	case stream.StreamEnabled && def.Stream != nil:
		return invalid("Table already has an enabled stream: TableName: %s", def.Name)
	case stream.StreamEnabled && stream.StreamViewType == "":
		return invalidValue("StreamSpecification.StreamViewType is required when StreamEnabled is true")
	case stream.StreamEnabled:
		def.Stream, def.StreamLabel = stream, now.UTC().Format("2006-01-02T15:04:05.000")
	default:
		def.Stream = nil
	}
	return nil
}

func (s *Server) updateTable(body []byte) ([]byte, error) {
	var req tableRequest
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	var t *table
	err := s.redefine(req.TableName, func(got *table, def *definition) error {
		t = got
		return req.update(def, s.now())
	})
	if err != nil {
		return nil, err
	}
	return tableReply("TableDescription", t, "UPDATING")
}

func (req *tableRequest) update(def *definition, now time.Time) error {
	for _, a := range req.AttributeDefinitions {
		if def.attributeType(a.Name) == "" {
			def.Attributes = append(slices.Clip(def.Attributes), a)
		}
	}
	if req.BillingMode != "" && req.BillingMode != def.BillingMode {
		def.BillingMode, def.Throughput = req.BillingMode, nil
	}
	if req.ProvisionedThroughput != nil {
		def.Throughput = req.ProvisionedThroughput
	}
	if err := req.settings(def, now); err != nil {
		return err
	}
	def.Indexes = slices.Clone(def.Indexes)
	for _, u := range req.GlobalSecondaryIndexUpdates {
		if err := u.apply(def); err != nil {
			return err
		}
	}
	def.Attributes = slices.DeleteFunc(slices.Clone(def.Attributes), func(a attributeDef) bool { return !def.usesAttribute(a.Name) })
	return def.check()
}

func (u indexUpdate) apply(def *definition) error {
	if u.Create != nil {
		def.Indexes = append(def.Indexes, *u.Create)
		return nil
	}
	name := ""
	switch {
	case u.Delete != nil:
		name = u.Delete.IndexName
	case u.Update != nil:
		name = u.Update.IndexName
	}
	i := slices.IndexFunc(def.Indexes, func(one indexDef) bool { return one.Name == name })
	if i < 0 {
		return &apiError{code: "ResourceNotFoundException", message: "Requested resource not found: index " + name}
	}
	if u.Delete != nil {
		def.Indexes = slices.Delete(def.Indexes, i, i+1)
		return nil
	}
	def.Indexes[i].Throughput = u.Update.ProvisionedThroughput
	return nil
}

// redefine changes a table's definition: edit works on a copy, and nothing is changed when it returns an error.
func (s *Server) redefine(name string, edit func(*table, *definition) error) error {
	t, err := s.table(name)
	if err != nil {
		return noSuchTableNamed(tableName(name))
	}
	if err := t.lock(); err != nil {
		return err
	}
	defer t.mu.Unlock()
	def := t.def
	if err := edit(t, &def); err != nil {
		return err
	}
	if err := s.log.append(entry{Table: &def}); err != nil {
		return err
	}
	t.setDefinition(def)
	return nil
}

// setDefinition puts def in force and fills the indexes anew when they, or TTL, are others than before.
func (t *table) setDefinition(def definition) {
	same := t.def.TTL == def.TTL && slices.EqualFunc(t.def.Indexes, def.Indexes, func(a, b indexDef) bool { return a.Name == b.Name })
	t.def = def
	if same {
		return
	}
	t.indexes = newTable(def).indexes
	t.rebuild()
}

func (s *Server) deleteTable(body []byte) ([]byte, error) {
	var req struct{ TableName string }
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[tableName(req.TableName)]
	if t == nil {
		return nil, noSuchTableNamed(tableName(req.TableName))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.def.DeletionProtection {
		return nil, invalid("Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first.")
	}
	if err := s.log.append(entry{Drop: t.name}); err != nil {
		return nil, err
	}
	t.dropped = true
	delete(s.tables, t.name)
	return describeReply("TableDescription", t, "DELETING")
}

func (s *Server) describeTable(body []byte) ([]byte, error) {
	var req struct{ TableName string }
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	t, err := s.table(req.TableName)
	if err != nil {
		return nil, noSuchTableNamed(tableName(req.TableName))
	}
	return tableReply("Table", t, "ACTIVE")
}

func (s *Server) listTables(body []byte) ([]byte, error) {
	var req struct {
		ExclusiveStartTableName string
		Limit                   int
	}
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	if req.Limit <= 0 || req.Limit > 100 {
		req.Limit = 100
	}
	s.mu.RLock()
	names := append([]string{}, sortedKeys(s.tables)...) // never null on the wire
	s.mu.RUnlock()
	first, found := slices.BinarySearch(names, req.ExclusiveStartTableName)
	if found {
		first++
	}
	names = names[first:]
	out := struct {
		TableNames             []string
		LastEvaluatedTableName string `json:",omitempty"`
	}{TableNames: names}
	if len(names) > req.Limit {
		out.TableNames = names[:req.Limit]
		out.LastEvaluatedTableName = names[req.Limit-1]
	}
	return marshal(out)
}

func marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return b, nil
}

// tableReply describes a table under the given name; a new or changed one is CREATING or UPDATING in the answer only, and
// can be used at once.
func tableReply(name string, t *table, status string) ([]byte, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return describeReply(name, t, status)
}

// describeReply is tableReply for a caller that holds t.mu.
func describeReply(name string, t *table, status string) ([]byte, error) {
	return marshal(map[string]any{name: t.describe(status)})
}
