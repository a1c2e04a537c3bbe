package record

import (
	"bytes"
	"encoding/json"
	"time"
)

// Page of a list of records. NextCursor is empty at the end, and only there.
type Page struct {
	Records    []Record
	NextCursor string
}

// MarshalJSON writes the record as clients see it: {"key","values":{field: value},"version","updated_at",
// "source":{"job_id","row_number"}}. Values stand in the order they have; numbers are JSON numbers with
// every digit.
func (r Record) MarshalJSON() ([]byte, error) {
	values, err := marshalValues(r.Values)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		Key       string          `json:"key"`
		Values    json.RawMessage `json:"values"`
		Version   int64           `json:"version"`
		UpdatedAt time.Time       `json:"updated_at"`
		Source    sourceJSON      `json:"source"`
	}{r.Key, values, r.Version, r.UpdatedAt.UTC(), sourceJSON(r.Source)})
}

type sourceJSON struct {
	JobID     string `json:"job_id"`
	RowNumber int64  `json:"row_number"`
}

func marshalValues(values []Value) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(v.Field)
		if err != nil {
			return nil, err
		}
		value, err := v.MarshalJSON()
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// MarshalJSON writes the value alone.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.Kind {
	case String:
		return json.Marshal(v.Text)
	case Number:
		return json.Marshal(json.Number(v.Text)) // refuses what is no JSON number
	case Bool:
		return json.Marshal(v.Text == "true")
	default:
		return []byte("null"), nil
	}
}
