package quarantine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// loadLarge fills in payloads that lie in the bucket, as far as they fit a page of maxBytes beside
// everything else on it. What does not fit stays out, and is shown as null.
func (s *Service) loadLarge(ctx context.Context, rows []Row, maxBytes int) error {
	room := maxBytes - envelopeBytes
	sizes := make([]int, len(rows))
	for i, r := range rows {
		var err error
		if sizes[i], err = escaped(r); err != nil {
			return err
		}
		room -= sizes[i]
	}
	for i, r := range rows {
		if r.RawKey == "" || room < MaxInlineRaw {
			continue
		}
		raw, err := s.read(ctx, r.RawKey, int64(room))
		if err != nil {
			return err
		}
		full := r
		full.Raw, full.RawKey = raw, ""
		size, err := escaped(full)
		if err != nil {
			return err
		}
		if size-sizes[i] > room {
			room -= len(raw) // one page reads maxBytes at most, even for nothing
			continue
		}
		rows[i] = full
		room -= size - sizes[i]
	}
	return nil
}

// envelopeBytes are set aside for what stands around the rows of a page.
const envelopeBytes = 8 << 10

// read gives the first bytes of an object.
func (s *Service) read(ctx context.Context, key string, most int64) ([]byte, error) {
	body, err := s.blob.Open(ctx, key, "", 0, -1)
	if err != nil {
		return nil, fmt.Errorf("read payload: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(body, most))
	return raw, errors.Join(err, body.Close())
}

// escaped is the length of a row's JSON as a string inside JSON, which is how an answer leaves a function.
func escaped(r Row) (int, error) {
	body, err := json.Marshal(r)
	return len(body) + bytes.Count(body, []byte{'"'}) + bytes.Count(body, []byte{'\\'}), err
}
