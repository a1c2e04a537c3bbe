package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/dataset"
	"pintu/internal/importer"
	"pintu/internal/job"
)

var _ importer.Records = (*Store)(nil)

// A record's attributes. Content: h hash, d values, v version, u updated_at (ms), j job, n row, w epoch of
// the writer, g epoch of the import that changed it last (the writer may have found it equal). Register, per
// slot i: ei epoch, ri row, ci chunk, bi hash before this import, hi hash by this import, vi version that
// conflicts are judged by, ti updated_at before (PROTOCOL P2). Names are short: every record pays for them.

// noHash stands in bi for "there was no record": SET cannot store the absence of an old value.
var noHash = []byte{0}

// slotExpressions are the fixed texts of the writes of one slot.
type slotExpressions struct {
	apply, applySeen, confirm, confirmSeen, precede, take, rename, retake string
	applyIf, matchIf, confirmIf, seenIf, precedeIf, takeIf                string
}

var bySlot = func() (all [job.Slots]slotExpressions) {
	for i := range all {
		fill := strings.NewReplacer("*", fmt.Sprint(i)).Replace
		entry := "e*=:e, r*=:r, c*=:c, h*=:h"
		content := "h=:h, d=:d, u=:u, j=:j, n=:r, w=:e, g=:e"
		source := "j=:j, n=:r, w=:e" // moves to this import; version and time stay, for the content did not change
		// Who changed the content is part of what was judged: the writer's own rows may change it and change it back.
		sameChange := " AND (attribute_not_exists(g) OR g = :gs)"
		mayWrite := "(attribute_not_exists(e*) OR e* < :e) AND (attribute_not_exists(w) OR w <= :e)"
		all[i] = slotExpressions{
			apply:       fill("SET b*=if_not_exists(h,:none), v*=if_not_exists(v,:zero), t*=if_not_exists(u,:zero), " + entry + ", " + content + ", v=if_not_exists(v,:zero)+:one"),
			applyIf:     fill(mayWrite + " AND (attribute_not_exists(h) OR h <> :h)"),
			matchIf:     fill(mayWrite + " AND h <> :h AND v = :x AND g < :g"),
			applySeen:   fill("SET b*=h, v*=:vb, t*=u, " + entry + ", " + content + ", v=v+:one"),
			confirm:     fill("SET b*=h, v*=v, t*=u, " + entry + ", " + source),
			confirmIf:   fill(mayWrite + " AND h = :h"),
			confirmSeen: fill("SET b*=h, v*=:vb, t*=u, " + entry + ", " + source),
			seenIf:      fill(mayWrite + " AND w = :w AND h = :hs AND v = :vs" + sameChange),
			precede:     fill("SET b*=:b, v*=:vb, t*=:tb, " + entry),
			precedeIf:   fill("(attribute_not_exists(e*) OR e* < :e) AND w = :w" + sameChange),
			take:        fill("SET r*=:r, c*=:c, h*=:h"),
			rename:      fill("SET r*=:r, c*=:c, h*=:h, n=:r"),
			retake:      fill("SET r*=:r, c*=:c, h*=:h, h=:h, d=:d, v=:v, u=:u, n=:r, g=:e"),
			takeIf:      fill("e*=:e AND r*=:old AND w=:w"),
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
	u := recordUpdate{slotExpressions: &bySlot[w.Slot], w: w, seen: seen,
		values: item{":e": num(w.Epoch), ":r": num(w.Row), ":c": num(int64(w.Chunk)), ":h": bin(w.Hash[:])}}
	switch a {
	case importer.Apply:
		u.writeContent()
	case importer.Confirm:
		u.writeSource()
	case importer.Precede:
		u.becomes(u.precede, u.precedeIf, item{":w": num(seen.Writer), ":gs": num(seen.Changed), ":b": bin(orNone(seen.Last.Before)), ":vb": num(seen.VersionBeforeLast()), ":tb": num(seen.Last.UpdatedBefore)})
	case importer.Displace:
		u.takePlace()
	default:
		return nil, fmt.Errorf("no write for action %d", a)
	}
	return &dynamodb.UpdateItemInput{
		TableName: &s.records, Key: recordKey(w.Tenant, w.Dataset, w.Key).item(), ExpressionAttributeValues: u.values,
		UpdateExpression: &u.update, ConditionExpression: &u.condition,
		ReturnValues: u.answer, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, nil
}

// recordUpdate is a write in the making.
type recordUpdate struct {
	*slotExpressions
	w                 importer.Write
	seen              importer.Register
	update, condition string
	values            item
	answer            types.ReturnValue
}

func (u *recordUpdate) becomes(update, condition string, values item) {
	u.update, u.condition, u.answer = update, condition, types.ReturnValueNone
	maps.Copy(u.values, values)
}

// asSeen tells that the write holds for the record as it was seen only: the rules were asked about that.
func (u *recordUpdate) asSeen() bool {
	return u.seen.Hash != nil && u.w.Rules != nil && !u.w.Rules.Outright()
}

func (u *recordUpdate) seenValues() item {
	return item{":w": num(u.seen.Writer), ":gs": num(u.seen.Changed), ":hs": bin(u.seen.Hash), ":vs": num(u.seen.Version), ":vb": num(u.w.VersionBefore(u.seen))}
}

func (u *recordUpdate) writeContent() {
	if u.asSeen() {
		u.becomes(u.applySeen, u.seenIf, u.seenValues())
	} else {
		u.becomes(u.apply, u.applyIf, item{":none": bin(noHash), ":zero": num(0)})
		u.restrict()
	}
	maps.Copy(u.values, item{":one": num(1), ":d": valuesItem(u.w), ":u": num(millis(u.w.Now)), ":j": str(u.w.JobID)})
	u.answer = types.ReturnValueUpdatedOld
}

// restrict narrows a row's first try to what its rules allow whatever is there. What they allow beyond that
// they do once the record was seen.
func (u *recordUpdate) restrict() {
	rules := u.w.Rules
	switch {
	case rules == nil || rules.Outright():
	case rules.OnConflict == importer.IfUnchanged && u.w.Expect > 0:
		// Reached before this work began, and by no import that is still under way.
		stable := u.w.Epoch
		if len(rules.Work) > 0 {
			stable = rules.Work[0]
		}
		u.condition = u.matchIf
		u.values[":x"], u.values[":g"] = num(u.w.Expect), num(stable)
		for i, epoch := range rules.Beside {
			name := fmt.Sprint(":g", i)
			u.condition += " AND g <> " + name
			u.values[name] = num(epoch)
		}
	case rules.OnConflict == importer.Update:
		u.condition += " AND (attribute_not_exists(g) OR g <= :since)"
		u.values[":since"] = num(rules.Since)
	default:
		u.condition = "attribute_not_exists(h)"
	}
}

func (u *recordUpdate) writeSource() {
	if u.asSeen() {
		u.becomes(u.confirmSeen, u.seenIf, u.seenValues())
	} else {
		u.becomes(u.confirm, u.confirmIf, nil)
	}
	u.values[":j"] = str(u.w.JobID)
}

// takePlace takes the entry of another row of this import, and its content with it if that is still this
// import's. The version ends one above what it was before the import if the content differs from then,
// else back there.
func (u *recordUpdate) takePlace() {
	own := u.seen.Own
	u.becomes(u.take, u.takeIf, item{":old": num(own.Row), ":w": num(u.seen.Writer)})
	switch {
	case u.seen.Writer != u.w.Epoch:
		return
	case string(u.seen.Hash) == string(u.w.Hash[:]):
		u.update = u.rename // the content stays, and so does who changed it
		return
	}
	u.update = u.retake
	version, updated := u.seen.VersionBeforeLast(), own.UpdatedBefore
	if string(own.Before) != string(u.w.Hash[:]) {
		version, updated = version+1, millis(u.w.Now)
	}
	maps.Copy(u.values, item{":d": valuesItem(u.w), ":v": num(version), ":u": num(updated)})
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
	r := importer.Register{Hash: binOf(it, "h"), Version: intOf(it, "v"), Writer: intOf(it, "w"), Changed: intOf(it, "g"), Own: entryOf(it, slot)}
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
