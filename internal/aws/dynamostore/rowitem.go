package dynamostore

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"pintu/internal/fault"
	"pintu/internal/id"
	"pintu/internal/quarantine"
)

// Attributes of a quarantined row. Names are short because a file of bad rows writes them by the million.
const (
	rowNumber    = "rn"
	rowChunk     = "ck"
	rowLine      = "ln"
	rowOffset    = "of"
	rowRaw       = "raw"
	rowRawKey    = "rk"
	rowState     = "st"
	rowCode      = "co"
	rowClass     = "cl"
	rowField     = "fi"
	rowMessage   = "me"
	rowAttempts  = "at"
	rowVersion   = "dv"
	rowResolved  = "rb"
	rowRetry     = "rj"
	rowAttempt   = "aj"
	rowReason    = "why"
	rowRev       = "rev"
	rowCreatedAt = "ca" // ms
)

// rowItem encodes a quarantined row with its key. Empty texts are left out; raw bytes are there exactly
// when no object holds them, even if there are none.
func rowItem(tenant string, job id.Job, r quarantine.Row) item {
	it := rowsKey(tenant, job, r.Chunk, r.RowNumber).item()
	for name, n := range map[string]int64{
		rowNumber: r.RowNumber, rowChunk: int64(r.Chunk), rowLine: r.Line, rowOffset: r.Offset,
		rowAttempts: int64(r.Attempts), rowVersion: int64(r.DatasetVersion), rowRev: r.Rev, rowCreatedAt: millis(r.CreatedAt),
	} {
		it[name] = num(n)
	}
	for name, text := range map[string]string{
		rowRawKey: r.RawKey, rowState: string(r.State), rowCode: string(r.Code), rowClass: string(r.Class),
		rowField: r.Field, rowMessage: r.Message, rowResolved: r.ResolvedBy, rowRetry: string(r.RetryJob), rowAttempt: string(r.AttemptJob), rowReason: r.Reason,
	} {
		if text != "" {
			it[name] = str(text)
		}
	}
	if r.RawKey == "" {
		it[rowRaw] = &types.AttributeValueMemberB{Value: append([]byte{}, r.Raw...)}
	}
	return it
}

// rowFrom is the inverse of rowItem.
func rowFrom(it item) quarantine.Row {
	return quarantine.Row{
		RowNumber:      intOf(it, rowNumber),
		Chunk:          int(intOf(it, rowChunk)),
		Line:           intOf(it, rowLine),
		Offset:         intOf(it, rowOffset),
		Raw:            binOf(it, rowRaw),
		RawKey:         textOf(it, rowRawKey),
		State:          quarantine.State(textOf(it, rowState)),
		Code:           fault.Code(textOf(it, rowCode)),
		Class:          quarantine.Class(textOf(it, rowClass)),
		Field:          textOf(it, rowField),
		Message:        textOf(it, rowMessage),
		Attempts:       int(intOf(it, rowAttempts)),
		DatasetVersion: int(intOf(it, rowVersion)),
		ResolvedBy:     textOf(it, rowResolved),
		RetryJob:       id.Job(textOf(it, rowRetry)),
		AttemptJob:     id.Job(textOf(it, rowAttempt)),
		Reason:         textOf(it, rowReason),
		Rev:            intOf(it, rowRev),
		CreatedAt:      fromMillis(intOf(it, rowCreatedAt)),
	}
}
