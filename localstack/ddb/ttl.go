package ddb

import (
	"encoding/binary"
	"time"
)

// reapEvery is how often requests look for expired items. AWS promises days; items may be seen after their time here too.
const reapEvery = 10 * time.Second

// maxExpiredFor is how far in the past a TTL may lie to count: AWS ignores values older than five years.
const maxExpiredFor = 5 * 365 * 24 * time.Hour

// reapWhenDue removes expired items if it has not been done for a while. Requests drive it, so that there is no goroutine
// whose clock could differ from Config.Now.
func (s *Server) reapWhenDue() error {
	now := s.now().Unix()
	due := s.nextReap.Load()
	if now < due || !s.nextReap.CompareAndSwap(due, now+int64(reapEvery/time.Second)) {
		return nil
	}
	_, err := s.RemoveExpired()
	return err
}

// RemoveExpired deletes every item whose TTL has passed by Config.Now and returns how many there were. Deleting costs no
// capacity.
func (s *Server) RemoveExpired() (int, error) {
	s.mu.RLock()
	tables := make([]*table, 0, len(s.tables))
	for _, t := range s.tables {
		tables = append(tables, t)
	}
	s.mu.RUnlock()
	removed := 0
	for _, t := range tables {
		n, err := s.reap(t)
		if err != nil {
			return removed, err
		}
		removed += n
	}
	return removed, nil
}

func (s *Server) reap(t *table) (int, error) {
	if t.lock() != nil {
		return 0, nil // deleted meanwhile, and its items with it
	}
	defer t.mu.Unlock()
	now := s.now()
	oldest := expiryBound(now.Add(-maxExpiredFor))
	end := expiryBound(now)
	var expired []change
	for n := t.expiry.firstFrom(oldest); n != nil && n.key < end; n = n.next[0] {
		key := t.schema.encode(n.item)
		old, _ := t.rows.get(key)
		expired = append(expired, change{t: t, key: key, old: old.item, oldSize: old.size})
	}
	if len(expired) == 0 {
		return 0, nil
	}
	_, err := s.commit(expired, nil)
	return len(expired), err
}

// expiryBound is the least expiry key at or after the second of at.
func expiryBound(at time.Time) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(max(0, at.Unix()))))
}

type ttlSpec struct {
	AttributeName string
	Enabled       bool
}

func (s *Server) updateTimeToLive(body []byte) ([]byte, error) {
	var req struct {
		TableName               string
		TimeToLiveSpecification ttlSpec
	}
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	spec := req.TimeToLiveSpecification
	err := s.redefine(req.TableName, func(_ *table, def *definition) error {
		switch {
		case spec.AttributeName == "":
			return invalid("1 validation error detected: Value '' at 'timeToLiveSpecification.attributeName' failed to satisfy constraint: Member must have length greater than or equal to 1")
		case spec.Enabled && def.TTL == spec.AttributeName:
			return invalid("TimeToLive is already enabled")
		case spec.Enabled && def.TTL != "":
			return invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s", def.TTL)
		case !spec.Enabled && def.TTL == "":
			return invalid("TimeToLive is already disabled")
		case spec.Enabled:
			def.TTL = spec.AttributeName
		default:
			def.TTL = ""
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return marshal(map[string]ttlSpec{"TimeToLiveSpecification": spec})
}

func (s *Server) describeTimeToLive(body []byte) ([]byte, error) {
	def, err := s.definition(body)
	if err != nil {
		return nil, err
	}
	d := map[string]string{"TimeToLiveStatus": "DISABLED"}
	if def.TTL != "" {
		d = map[string]string{"TimeToLiveStatus": "ENABLED", "AttributeName": def.TTL}
	}
	return marshal(map[string]any{"TimeToLiveDescription": d})
}

// definition reads a request that has nothing but a table's name.
func (s *Server) definition(body []byte) (definition, error) {
	var req struct{ TableName string }
	if err := decode(body, &req); err != nil {
		return definition{}, err
	}
	t, err := s.table(req.TableName)
	if err != nil {
		return definition{}, noSuchTableNamed(tableName(req.TableName))
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.def, nil
}

func (s *Server) updateContinuousBackups(body []byte) ([]byte, error) {
	var req struct {
		TableName                        string
		PointInTimeRecoverySpecification struct{ PointInTimeRecoveryEnabled bool }
	}
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	on := req.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled
	err := s.redefine(req.TableName, func(_ *table, def *definition) error {
		def.Recovery = on
		return nil
	})
	if err != nil {
		return nil, err
	}
	return backupsReply(on)
}

func (s *Server) describeContinuousBackups(body []byte) ([]byte, error) {
	def, err := s.definition(body)
	if err != nil {
		return nil, err
	}
	return backupsReply(def.Recovery)
}

func backupsReply(on bool) ([]byte, error) {
	status := "DISABLED"
	if on {
		status = "ENABLED"
	}
	return marshal(map[string]any{"ContinuousBackupsDescription": map[string]any{
		"ContinuousBackupsStatus":        "ENABLED",
		"PointInTimeRecoveryDescription": map[string]string{"PointInTimeRecoveryStatus": status},
	}})
}
