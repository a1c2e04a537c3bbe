package httpapi

import (
	"pintu/internal/fault"
	"pintu/internal/quarantine"
)

// rowCodes are the codes a row can be rejected with.
var rowCodes = []string{
	string(fault.MissingValue), string(fault.TypeMismatch), string(fault.ConstraintViolated), string(fault.WrongColumnCount),
	string(fault.MalformedRow), string(fault.InvalidEncoding), string(fault.DuplicateKey), string(fault.KeyConflict),
	string(fault.RecordTooLarge), string(fault.TransformFailed), string(fault.Internal),
}

// listRows gives a page of the rows of a job that could not be applied, in row order.
func (a *api) listRows(c *call) (reply, error) {
	p := &c.params
	f := quarantine.Filter{
		State: quarantine.State(p.oneOf("state", "quarantined", "retrying", "resolved", "discarded")),
		Code:  fault.Code(p.oneOf("code", rowCodes...)),
		Class: quarantine.Class(p.oneOf("class", string(quarantine.Data), string(quarantine.Code))),
	}
	limit, cursor := p.limit(pageLimit(c.caller)), p.text("cursor")
	if err := p.problems.err(); err != nil {
		return reply{}, err
	}
	jobID, err := c.jobID()
	if err != nil {
		return reply{}, err
	}
	if _, err := a.Jobs.Get(c.ctx(), c.caller, jobID); err != nil {
		return reply{}, err
	}
	out, err := page("rows", limit, func(limit int) ([]quarantine.Row, string, error) {
		got, err := a.Rows.ListRows(c.ctx(), c.caller.Tenant, jobID, f, cursor, limit, maxPageBytes)
		return got.Rows, got.NextCursor, err
	})
	return out.about(jobID), err
}
