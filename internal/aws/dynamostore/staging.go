package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/dataset"
	"pintu/internal/importer"
	"pintu/internal/job"
)

// A staged row is the content of a record to be, with an entry of slot 0 that names its row. It goes by TTL:
// no job is under way for that long, and a commit that was not copied by then says so.
const stagedFor = 30 * 24 * time.Hour

const (
	stage     = "SET e0=:e, r0=:r, c0=:c, h0=:h, b0=:b, v0=:v, d=:d, #ttl=:ttl"
	restage   = "SET r0=:r, c0=:c, h0=:h, d=:d"
	unstaged  = "attribute_not_exists(pk)"
	restageIf = "r0=:old"
)

// judged are the attributes of a record that rows are judged by: all but its values.
var judged = func() expression.ProjectionBuilder {
	p := expression.NamesList(expression.Name("h"), expression.Name("v"), expression.Name("w"), expression.Name("g"))
	for slot := range job.Slots {
		for _, name := range []string{"e", "r", "c", "b", "h", "v", "t"} {
			p = p.AddNames(expression.Name(name + strconv.Itoa(slot)))
		}
	}
	return p
}()

// StageRecord writes a row into the job's own partition as WriteRecord would into the dataset: one row per
// key, judged by the stored record, which is read the first time and not touched.
func (s *Store) StageRecord(ctx context.Context, w importer.Write, a importer.Action, seen importer.Register) (*importer.Register, bool, error) {
	if a != importer.Displace && seen.Hash == nil {
		stored, err := s.judge(ctx, w)
		if err != nil {
			return nil, false, err
		}
		stored.Own = nil // entries of the dataset's register are none of the staged row's
		action, _ := importer.Decide(w, stored)
		if action == importer.Settled { // a conflict, unless a row of this job has the key: then the record as that one found it counts
			if own, err := s.stagedEntry(ctx, w); err != nil || own != nil {
				return &importer.Register{Own: own}, false, err
			}
		}
		if stored.Hash != nil || action != importer.Apply {
			return &stored, false, nil
		}
	}
	_, err := s.db.UpdateItem(ctx, s.stageUpdate(w, a, seen))
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return nil, seen.Hash != nil, nil
	case errors.As(err, &failed):
		return &importer.Register{Own: entryOf(failed.Item, 0)}, false, nil
	}
	return nil, false, unavailable("stage record", err)
}

func (s *Store) stageUpdate(w importer.Write, a importer.Action, seen importer.Register) *dynamodb.UpdateItemInput {
	in := &dynamodb.UpdateItemInput{
		TableName: &s.records, Key: stageKey(w.Tenant, w.JobID, w.Key).item(), ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ExpressionAttributeValues: item{":r": num(w.Row), ":c": num(int64(w.Chunk)), ":h": bin(w.Hash[:]), ":d": valuesItem(w)},
	}
	if a == importer.Displace {
		in.UpdateExpression, in.ConditionExpression = aws.String(restage), aws.String(restageIf)
		in.ExpressionAttributeValues[":old"] = num(seen.Own.Row)
		return in
	}
	before, version := seen.Hash, w.VersionBefore(seen)
	if a == importer.Precede {
		before, version = seen.Last.Before, seen.VersionBeforeLast()
	}
	in.UpdateExpression, in.ConditionExpression = aws.String(stage), aws.String(unstaged)
	in.ExpressionAttributeNames = map[string]string{"#ttl": attrTTL}
	maps.Copy(in.ExpressionAttributeValues, item{":e": num(w.Epoch), ":b": bin(orNone(before)), ":v": num(version), ":ttl": num(w.Now.Add(stagedFor).Unix())})
	return in
}

// judge reads what a row is judged by.
func (s *Store) judge(ctx context.Context, w importer.Write) (importer.Register, error) {
	e, err := expression.NewBuilder().WithProjection(judged).Build()
	if err != nil {
		return importer.Register{}, fmt.Errorf("read record: %w", err)
	}
	out, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.records, Key: recordKey(w.Tenant, w.Dataset, w.Key).item(),
		ConsistentRead: aws.Bool(true), ProjectionExpression: e.Projection(), ExpressionAttributeNames: e.Names()})
	if err != nil {
		return importer.Register{}, unavailable("read record", err)
	}
	return registerOf(out.Item, w.Slot), nil
}

// stagedEntry is the entry of the row that holds a key in the job's own partition, nil when none does.
func (s *Store) stagedEntry(ctx context.Context, w importer.Write) (*importer.Entry, error) {
	out, err := s.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.records, Key: stageKey(w.Tenant, w.JobID, w.Key).item(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, unavailable("read staged row", err)
	}
	return entryOf(out.Item, 0), nil
}

// Staged reads a page of staged rows in order of their keys, strongly consistent.
func (s *Store) Staged(ctx context.Context, j job.Job, shard int, after string, limit int) ([]importer.Write, error) {
	in := &dynamodb.QueryInput{
		TableName: &s.records, ConsistentRead: aws.Bool(true), Limit: aws.Int32(int32(limit)), KeyConditionExpression: aws.String("pk = :pk"),
		ExpressionAttributeValues: item{":pk": str(stagePK(j.Tenant, string(j.ID), shard))},
	}
	if after != "" {
		in.KeyConditionExpression, in.ExpressionAttributeValues[":after"] = aws.String("pk = :pk AND sk > :after"), str(after)
	}
	out, err := s.db.Query(ctx, in)
	if err != nil {
		return nil, unavailable("read staged rows", err)
	}
	rows := make([]importer.Write, len(out.Items))
	for i, it := range out.Items {
		if rows[i], err = stagedRow(j, it); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// stagedRow is the write that copies a staged row. It goes by no rules: they were asked when it was staged.
func stagedRow(j job.Job, it item) (importer.Write, error) {
	e := entryOf(it, 0)
	values, ok := it["d"].(*types.AttributeValueMemberM)
	if e == nil || !ok {
		return importer.Write{}, fmt.Errorf("read staged row: no entry or no values")
	}
	w := importer.Write{Tenant: j.Tenant, Dataset: j.Spec.Dataset, Key: textOf(it, attrSK), Slot: j.Slot, Epoch: j.Epoch, JobID: string(j.ID),
		Row: e.Row, Chunk: e.Chunk, Fields: slices.Sorted(maps.Keys(values.Value))}
	copy(w.Hash[:], e.Written)
	for _, name := range w.Fields {
		v, err := stagedValue(values.Value[name])
		if err != nil {
			return w, err
		}
		w.Values = append(w.Values, v)
	}
	return w, nil
}

func stagedValue(v types.AttributeValue) (dataset.Value, error) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return dataset.Value{Kind: dataset.String, Text: []byte(v.Value)}, nil
	case *types.AttributeValueMemberN:
		return dataset.Value{Kind: dataset.Number, Text: []byte(v.Value)}, nil
	case *types.AttributeValueMemberBOOL:
		return dataset.Value{Kind: dataset.Bool, Text: strconv.AppendBool(nil, v.Value)}, nil
	case *types.AttributeValueMemberNULL:
		return dataset.Value{}, nil
	}
	return dataset.Value{}, fmt.Errorf("read staged row: a value of type %T", v)
}

// Commit marks a job as accepted. A cancel or a stop that came before refuses it, one that comes after is
// refused by it.
func (s *Store) Commit(ctx context.Context, j job.Job, at time.Time) error {
	return s.updateJob(ctx, "commit job", j, fields{"CommittedAt": at}, inStatus(job.Running).And(allDone(j), noCancel(), unset("Stop"), uncommitted()))
}

// SaveCopied moves on how far a committed job has copied.
func (s *Store) SaveCopied(ctx context.Context, j job.Job, to job.Copied) error {
	return s.updateJob(ctx, "save copied", j, fields{"Copied": to}, inStatus(job.Running).And(expression.Name("Copied").Equal(expression.Value(j.Copied))))
}

// uncommitted is the condition that a job is not past its commit point.
func uncommitted() expression.ConditionBuilder {
	return expression.Name("CommittedAt").Equal(expression.Value(time.Time{}))
}
