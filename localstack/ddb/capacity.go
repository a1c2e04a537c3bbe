package ddb

import (
	"math"
	"sync"
)

// usage is capacity consumed on one table by one operation, which either reads or writes: units of the table itself and of
// each index touched.
type usage struct {
	reading bool
	own     float64
	indexes map[string]float64
}

// Consumed is the capacity a table has been billed for since it was made or loaded, indexes included.
type Consumed struct {
	ReadUnits  float64 // 4 KB each, strongly consistent; half for eventually consistent
	WriteUnits float64 // 1 KB each
}

// Consumed returns what a table has been billed for so far. Unlike the ConsumedCapacity of answers it includes writes whose
// condition failed and transactions that were cancelled, for which AWS bills too but reports nothing to the caller.
func (s *Server) Consumed(tableName string) (Consumed, error) {
	t, err := s.table(tableName)
	if err != nil {
		return Consumed{}, err
	}
	t.billed.mu.Lock()
	defer t.billed.mu.Unlock()
	return t.billed.Consumed, nil
}

// account is a table's Consumed with a lock of its own, because reads bill too.
type account struct {
	mu sync.Mutex
	Consumed
}

func (a *account) bill(u usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if u.reading {
		a.ReadUnits += u.total()
		return
	}
	a.WriteUnits += u.total()
}

func (u *usage) addIndex(name string, units float64) {
	if u.indexes == nil {
		u.indexes = map[string]float64{}
	}
	u.indexes[name] += units
}

func (u *usage) add(v usage) {
	u.reading = v.reading
	u.own += v.own
	for name, units := range v.indexes {
		u.addIndex(name, units)
	}
}

// total is what ConsumedCapacity.CapacityUnits says.
func (u usage) total() float64 {
	sum := u.own
	for _, units := range u.indexes {
		sum += units
	}
	return sum
}

// writeUnits is 1 per 1 KB begun, and at least 1.
func writeUnits(size int) float64 { return max(1, math.Ceil(float64(size)/1024)) }

// readUnits is 1 per 4 KB begun, and at least 1; half of it for an eventually consistent read.
func readUnits(size int, consistent bool) float64 {
	units := max(1, math.Ceil(float64(size)/4096))
	if !consistent {
		return units / 2
	}
	return units
}

// The values of ReturnConsumedCapacity.
const (
	capacityTotal   = "TOTAL"
	capacityIndexes = "INDEXES"
)

// units is the JSON form of capacity; the split by kind is reported for transactions only.
type units struct {
	CapacityUnits      float64
	ReadCapacityUnits  *float64 `json:",omitempty"`
	WriteCapacityUnits *float64 `json:",omitempty"`
}

func (u *units) split(reading bool) {
	all := u.CapacityUnits
	if reading {
		u.ReadCapacityUnits = &all
		return
	}
	u.WriteCapacityUnits = &all
}

type consumedCapacity struct {
	TableName string
	units
	Table                  *units           `json:",omitempty"`
	GlobalSecondaryIndexes map[string]units `json:",omitempty"`
}

// consumed makes the report for one table; detail is the request's ReturnConsumedCapacity.
func (u usage) consumed(table, detail string, transaction bool) consumedCapacity {
	c := consumedCapacity{TableName: table, units: units{CapacityUnits: u.total()}}
	own := units{CapacityUnits: u.own}
	if transaction {
		c.units.split(u.reading)
		own.split(u.reading)
	}
	if detail != capacityIndexes {
		return c
	}
	c.Table = &own
	for name, n := range u.indexes {
		if c.GlobalSecondaryIndexes == nil {
			c.GlobalSecondaryIndexes = map[string]units{}
		}
		c.GlobalSecondaryIndexes[name] = units{CapacityUnits: n}
	}
	return c
}

// capacity adds ConsumedCapacity when the request asked for it.
func (r *reply) capacity(u usage, table, detail string) error {
	if detail != capacityTotal && detail != capacityIndexes {
		return nil
	}
	return r.json("ConsumedCapacity", u.consumed(table, detail, false))
}

// capacities is capacity for operations over several tables: a list ordered by table.
func (r *reply) capacities(used map[*table]*usage, detail string, transaction bool) error {
	if detail != capacityTotal && detail != capacityIndexes {
		return nil
	}
	list := []consumedCapacity{}
	for _, t := range sortedTables(used) {
		list = append(list, used[t].consumed(t.name, detail, transaction))
	}
	return r.json("ConsumedCapacity", list)
}
