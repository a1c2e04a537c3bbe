package httpapi

import (
	"net/http"

	"pintu/internal/dataset"
	"pintu/internal/fault"
	"pintu/internal/record"
)

// listRecords gives a page of records in the order of their keys within each shard, or, with ?key=, the one
// record of that key: a key with a slash does not survive in every path.
func (a *api) listRecords(c *call) (reply, error) {
	p := &c.params
	limit, cursor := p.limit(pageLimit(c.caller)), p.text("cursor")
	byKey := p.values.Has("key")
	if byKey && (p.values.Has("cursor") || p.values.Has("limit")) {
		p.problems.add("key", "names one record; cursor and limit do not go with it")
	}
	if err := p.problems.err(); err != nil {
		return reply{}, err
	}
	d, err := a.datasetOf(c)
	if err != nil {
		return reply{}, err
	}
	if byKey {
		return a.showRecord(c, d, p.text("key"))
	}
	return page("records", limit, func(limit int) ([]record.Record, string, error) {
		got, err := a.Records.ListRecords(c.ctx(), c.caller.Tenant, d.Name, cursor, limit, maxPageBytes)
		return got.Records, got.NextCursor, err
	})
}

func (a *api) getRecord(c *call) (reply, error) {
	d, err := a.datasetOf(c)
	if err != nil {
		return reply{}, err
	}
	return a.showRecord(c, d, c.PathValue("key"))
}

func (a *api) showRecord(c *call, d dataset.Version, key string) (reply, error) {
	none := fault.New(fault.RecordNotFound, "there is no record with this key; a key of several fields is a JSON array of texts")
	stored, ok := d.Definition.Key(key)
	if !ok {
		return reply{}, none
	}
	rec, found, err := a.Records.GetRecord(c.ctx(), c.caller.Tenant, d.Name, stored)
	if err != nil {
		return reply{}, err
	}
	if !found {
		return reply{}, none
	}
	return answer(http.StatusOK, rec)
}
