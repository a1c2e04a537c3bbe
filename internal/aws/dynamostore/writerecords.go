package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/dataset"
	"pintu/internal/importer"
	"pintu/internal/job"
)

var _ importer.Records = (*Store)(nil)

// A record's attributes. Content: h hash, d values, v version, u updated_at (ms), j job, n row, w epoch of
// the writer. Register, per slot i: ei epoch, ri row, ci chunk, bi hash before this import, hi hash by this
// import, vi version before, ti updated_at before (PROTOCOL P2). Names are short: every record pays for them.

// noHash stands in bi for "there was no record": SET cannot store the absence of an old value.
var noHash = []byte{0}

// slotExpressions are the fixed texts of the writes of one slot.
type slotExpressions struct {
	apply, confirm, precede, take, retake string
	applyIf, confirmIf, precedeIf, takeIf string
}

var bySlot = func() (all [job.Slots]slotExpressions) {
	for i := range all {
		fill := strings.NewReplacer("*", fmt.Sprint(i)).Replace
		entry := "e*=:e, r*=:r, c*=:c, h*=:h"
		free := "(attribute_not_exists(e*) OR e* < :e)"
		all[i] = slotExpressions{
			apply: fill("SET b*=if_not_exists(h,:none), v*=if_not_exists(v,:zero), t*=if_not_exists(u,:zero), " + entry +
				", h=:h, d=:d, v=if_not_exists(v,:zero)+:one, u=:u, j=:j, n=:r, w=:e"),
			applyIf: fill(free + " AND (attribute_not_exists(w) OR w <= :e) AND (attribute_not_exists(h) OR h <> :h)"),
			// The version and the time stay: the content did not change. The source moves to this import.
			confirm:   fill("SET b*=h, v*=v, t*=u, " + entry + ", j=:j, n=:r, w=:e"),
			confirmIf: fill(free + " AND (attribute_not_exists(w) OR w <= :e) AND h = :h"),
			precede:   fill("SET b*=:b, v*=:vb, t*=:tb, " + entry),
			precedeIf: fill(free + " AND w = :w"),
			take:      fill("SET r*=:r, c*=:c, h*=:h"),
			retake:    fill("SET r*=:r, c*=:c, h*=:h, h=:h, d=:d, v=:vb, u=:tb, n=:r"),
			takeIf:    fill("e*=:e AND r*=:old AND w=:w"),
		}
	}
	return all
}()

// WriteRecord is one conditional UpdateItem; see importer.Decide for what each action is for.
func (s *Store) WriteRecord(ctx context.Context, w importer.Write, a importer.Action, seen importer.Register) (*importer.Register, bool, error) {
	in, err := s.recordUpdate(w, a, seen)
	if err != nil {
		return nil, false, err
	}
	out, err := s.db.UpdateItem(ctx, in)
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil, out.Attributes["h"] != nil, nil
	case errors.As(err, &failed):
		r := registerOf(failed.Item, w.Slot)
		return &r, false, nil
	}
	return nil, false, unavailable("write record", err)
}

func (s *Store) recordUpdate(w importer.Write, a importer.Action, seen importer.Register) (*dynamodb.UpdateItemInput, error) {
	x := bySlot[w.Slot]
	v := item{":e": num(w.Epoch), ":r": num(w.Row), ":c": num(int64(w.Chunk)), ":h": bin(w.Hash[:])}
	in := &dynamodb.UpdateItemInput{
		TableName: &s.records, Key: recordKey(w.Tenant, w.Dataset, w.Key).item(), ExpressionAttributeValues: v,
		ReturnValues: types.ReturnValueNone, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	switch a {
	case importer.Apply:
		in.UpdateExpression, in.ConditionExpression, in.ReturnValues = &x.apply, &x.applyIf, types.ReturnValueUpdatedOld
		v[":none"], v[":zero"], v[":one"] = bin(noHash), num(0), num(1)
		v[":d"], v[":u"], v[":j"] = valuesItem(w), num(millis(w.Now)), str(w.JobID)
	case importer.Confirm:
		in.UpdateExpression, in.ConditionExpression = &x.confirm, &x.confirmIf
		v[":j"] = str(w.JobID)
	case importer.Precede:
		in.UpdateExpression, in.ConditionExpression = &x.precede, &x.precedeIf
		v[":w"], v[":b"], v[":vb"], v[":tb"] = num(seen.Writer), bin(orNone(seen.Last.Before)), num(seen.Last.VersionBefore), num(seen.Last.UpdatedBefore)
	case importer.Displace:
		s.displace(in, v, w, seen)
	default:
		return nil, fmt.Errorf("no write for action %d", a)
	}
	return in, nil
}

// displace takes the entry of a larger row, and its content with it if that is still this import's. The
// version ends one above what it was before the import if the content differs from then, else back there.
func (s *Store) displace(in *dynamodb.UpdateItemInput, v item, w importer.Write, seen importer.Register) {
	x := bySlot[w.Slot]
	in.UpdateExpression, in.ConditionExpression = &x.take, &x.takeIf
	v[":old"], v[":w"] = num(seen.Own.Row), num(seen.Writer)
	if seen.Writer != w.Epoch {
		return
	}
	in.UpdateExpression = &x.retake
	version, updated := seen.Own.VersionBefore+1, millis(w.Now)
	if string(seen.Own.Before) == string(w.Hash[:]) {
		version, updated = seen.Own.VersionBefore, seen.Own.UpdatedBefore
	}
	v[":d"], v[":vb"], v[":tb"] = valuesItem(w), num(version), num(updated)
}

// valuesItem is the content: one map, so that a column dropped in a later version cannot linger.
func valuesItem(w importer.Write) types.AttributeValue {
	m := make(item, len(w.Values))
	for i, value := range w.Values {
		text := string(value.Text)
		switch value.Kind {
		case dataset.String:
			m[w.Fields[i]] = str(text)
		case dataset.Number:
			m[w.Fields[i]] = &types.AttributeValueMemberN{Value: text}
		case dataset.Bool:
			m[w.Fields[i]] = boolean(text == "true")
		default:
			m[w.Fields[i]] = &types.AttributeValueMemberNULL{Value: true}
		}
	}
	return &types.AttributeValueMemberM{Value: m}
}

func orNone(hash []byte) []byte {
	if hash == nil {
		return noHash
	}
	return hash
}

// registerOf reads what a refused write saw.
func registerOf(it item, slot int) importer.Register {
	r := importer.Register{Hash: binOf(it, "h"), Version: intOf(it, "v"), Writer: intOf(it, "w"), Own: entryOf(it, slot)}
	for i := range job.Slots {
		if e := entryOf(it, i); e != nil && r.Writer != 0 && e.Epoch == r.Writer {
			r.Last = e
		}
	}
	return r
}

func entryOf(it item, slot int) *importer.Entry {
	at := func(name string) string { return name + fmt.Sprint(slot) }
	if it[at("e")] == nil {
		return nil
	}
	e := &importer.Entry{Epoch: intOf(it, at("e")), Row: intOf(it, at("r")), Chunk: int(intOf(it, at("c"))), Written: binOf(it, at("h")),
		VersionBefore: intOf(it, at("v")), UpdatedBefore: intOf(it, at("t"))}
	if b := binOf(it, at("b")); len(b) > len(noHash) {
		e.Before = b
	}
	return e
}
