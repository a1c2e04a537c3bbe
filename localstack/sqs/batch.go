package sqs

import "regexp"

// failedEntry is one entry of a batch that was refused while others were not.
type failedEntry struct {
	Id, Code, Message string
	SenderFault       bool
}

type batchOut[R any] struct {
	Successful []R           `json:",omitempty"`
	Failed     []failedEntry `json:",omitempty"`
}

var entryID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// batch runs one on each entry and reports each by its id. The whole batch is refused when it is empty, has more than
// ten entries, or ids that are malformed or not distinct.
func batch[E, R any](entries []E, id func(E) string, one func(E) (R, error)) (batchOut[R], error) {
	var out batchOut[R]
	if err := checkEntries(entries, id); err != nil {
		return out, err
	}
	for _, e := range entries {
		r, err := one(e)
		if err == nil {
			out.Successful = append(out.Successful, r)
			continue
		}
		f, ok := err.(*fault)
		if !ok {
			return out, err
		}
		out.Failed = append(out.Failed, failedEntry{id(e), f.query, f.message, f.status < 500})
	}
	return out, nil
}

func checkEntries[E any](entries []E, id func(E) string) error {
	if len(entries) == 0 {
		return clientFault("EmptyBatchRequest", legacy+"EmptyBatchRequest", "There should be at least one entry in the request.")
	}
	if len(entries) > 10 {
		return clientFault("TooManyEntriesInBatchRequest", legacy+"TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent %d.", len(entries))
	}
	seen := map[string]bool{}
	for _, e := range entries {
		if !entryID.MatchString(id(e)) {
			return clientFault("InvalidBatchEntryId", legacy+"InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
		if seen[id(e)] {
			return clientFault("BatchEntryIdsNotDistinct", legacy+"BatchEntryIdsNotDistinct", "Id %s repeated.", id(e))
		}
		seen[id(e)] = true
	}
	return nil
}
