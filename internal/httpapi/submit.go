package httpapi

import (
	"cmp"
	"mime"
	"net/http"
	"regexp"
	"strings"

	"pintu/internal/dataset"
	"pintu/internal/idempotency"
	"pintu/internal/job"
	"pintu/internal/rowio"
)

// Bounds of a submit that are no limits of a client.
const (
	maxText         = 255 // characters of a file name, media type or deduplication key
	maxMetadata     = 4096
	maxReuseSeconds = 30 * 24 * 60 * 60
	maxDays         = 365
	maxRejectedRows = 1_000_000_000
	maxInt53        = 1<<53 - 1 // what every JSON reader can hold exactly
)

// Rules of a submit that others are bound to.
const (
	ifUnchanged = "if_unchanged"
	perRow      = "per_row"
)

// submitImport makes an import job, or finds the one that this request, or another with the same
// deduplication key, already made.
func (a *api) submitImport(c *call) (reply, error) {
	spec, err := readImport(c.body)
	if err != nil {
		return reply{}, err
	}
	in, err := c.intent(spec)
	if err != nil {
		return reply{}, err
	}
	done, err := a.Jobs.SubmitImport(c.ctx(), c.caller, in, c.requestID, spec)
	if err != nil {
		return reply{}, err
	}
	return submitted(c, done)
}

// submitted answers with a job that a request made or found.
func submitted(c *call, done job.Submitted) (reply, error) {
	status, view := http.StatusAccepted, viewOf(done.Job, c.language)
	if done.Outcome == idempotency.Deduplicated {
		status, view.Deduplicated = http.StatusOK, true
	}
	out, err := answer(status, submittedView{view, uploadOf(done.Grant)})
	if done.Allowance != nil {
		out = out.withRateLimit(done.Allowance.Limit, done.Allowance.Remaining, done.Allowance.ResetSeconds)
	}
	return out.replayed(done.Replayed).pollable(done.Job).about(done.Job.ID), err
}

// readImport understands the body of a submit, defaults filled in: what it gives is the canonical body, so
// that absent, null and default are the same request. What the system cannot do yet is refused by name.
func readImport(body []byte) (job.ImportSpec, error) {
	var bad problems
	o := bad.readObject(body)
	if len(bad) > 0 {
		return job.ImportSpec{}, bad.err()
	}
	spec := job.ImportSpec{
		Dataset:            o.datasetName("dataset"),
		DatasetVersion:     int(o.whole("dataset_version", 0, 1, 1<<31-1)),
		Format:             cmp.Or(o.oneOf("format", rowio.FormatCSV, rowio.FormatJSONL), rowio.FormatCSV),
		UploadMethod:       o.only("upload_method", "put", "post", "multipart"),
		File:               readFile(o),
		Dialect:            readDialect(o),
		Encoding:           o.encoding("encoding"),
		OnConflict:         o.oneOf("on_conflict", dataset.OnConflictRule.Values...),
		VersionColumn:      o.text("version_column", maxText),
		Duplicates:         o.oneOf("duplicates", dataset.DuplicatesRule.Values...),
		Atomicity:          cmp.Or(o.oneOf("atomicity", perRow, job.AllOrNothing), perRow),
		DryRun:             o.flag("dry_run"),
		MaxRejected:        o.whole("max_rejected", job.DefaultMaxRejected, 0, maxRejectedRows),
		MaxRejectedPercent: o.decimal("max_rejected_percent", 0, 100),
		DeduplicationKey:   o.text("deduplication_key", maxText),
		ForceReprocess:     o.flag("force_reprocess"),
		ReuseWindowSeconds: o.whole("reuse_window_seconds", job.DefaultReuseSeconds, 0, maxReuseSeconds),
		Retention:          readRetention(o),
		Metadata:           o.opaque("metadata", maxMetadata),
	}
	if spec.Format == rowio.FormatJSONL && spec.Dialect != nil {
		o.bad("dialect", "belongs to format csv")
	}
	switch unchanged := spec.OnConflict == ifUnchanged; {
	case unchanged && spec.VersionColumn == "":
		o.bad("version_column", "is required with on_conflict if_unchanged: the column of the file that holds each record's version")
	case !unchanged && spec.OnConflict != "" && spec.VersionColumn != "":
		o.bad("version_column", "belongs to on_conflict if_unchanged")
	}
	o.unavailable("callback_url", "webhooks are not available yet; poll status_url instead")
	o.close()
	return spec, bad.err()
}

func (o *object) datasetName(name string) string {
	s := o.required(name, maxText)
	if s != "" && !dataset.ValidName(s) {
		o.bad(name, "must be 1 to 64 lower-case letters, digits, - and _, the first a letter or digit")
	}
	return s
}

func (o *object) encoding(name string) string {
	const utf8 = "utf-8"
	if s, ok := o.members[name].(string); ok && strings.EqualFold(s, utf8) {
		o.take(name)
		return utf8
	}
	s := o.text(name, maxText)
	if s != "" {
		o.bad(name, "%s is not available yet; supported: %s", clip(s), utf8)
	}
	return utf8
}

var hexSHA256 = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

func readFile(body *object) job.File {
	o := body.object("file")
	if body.members["file"] == nil {
		body.bad("file", "is required")
		return job.File{}
	}
	f := job.File{
		Name:        o.required("name", maxText),
		SizeBytes:   o.whole("size_bytes", 0, 0, maxInt53),
		ContentType: o.mediaType("content_type", "text/csv"),
		SHA256:      strings.ToLower(o.text("sha256", 64)),
	}
	if o.members["size_bytes"] == nil {
		o.bad("size_bytes", "is required")
	}
	if f.SHA256 != "" && !hexSHA256.MatchString(f.SHA256) {
		o.bad("sha256", "must be 64 hexadecimal digits")
	}
	o.close()
	return f
}

// mediaType takes a value that the client will send as a header, byte for byte.
func (o *object) mediaType(name, fallback string) string {
	s := o.text(name, maxText)
	if s == "" {
		return fallback
	}
	ascii := !strings.ContainsFunc(s, func(c rune) bool { return c < 0x20 || c > 0x7e })
	if _, _, err := mime.ParseMediaType(s); err != nil || !ascii || !strings.Contains(s, "/") || strings.TrimSpace(s) != s {
		o.bad(name, "must be a media type such as text/csv")
	}
	return s
}

// readDialect gives nil when nothing is declared: the dataset's dialect holds then.
func readDialect(body *object) *rowio.Dialect {
	if body.members["dialect"] == nil {
		body.take("dialect")
		return nil
	}
	o, before := body.object("dialect"), len(*body.problems)
	d := rowio.Dialect{
		Delimiter:        o.character("delimiter"),
		QuoteChar:        o.character("quoteChar"),
		DoubleQuote:      o.optionalFlag("doubleQuote"),
		EscapeChar:       o.character("escapeChar"),
		SkipInitialSpace: o.flag("skipInitialSpace"),
		CommentChar:      o.character("commentChar"),
		Header:           o.optionalFlag("header"),
	}
	o.close()
	if err := d.Validate(); err != nil && len(*body.problems) == before {
		body.bad("dialect", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if d == (rowio.Dialect{}) {
		return nil
	}
	return &d
}

func (o *object) optionalFlag(name string) *bool {
	if o.members[name] == nil {
		o.take(name)
		return nil
	}
	b := o.flag(name)
	return &b
}

func readRetention(body *object) job.Retention {
	o, d := body.object("retention"), job.DefaultRetention()
	r := job.Retention{
		InputDays:      int(o.whole("input_days", int64(d.InputDays), 1, maxDays)),
		ResultsDays:    int(o.whole("results_days", int64(d.ResultsDays), 1, maxDays)),
		QuarantineDays: int(o.whole("quarantine_days", int64(d.QuarantineDays), 1, maxDays)),
	}
	o.close()
	return r
}

// completeUpload tells that the file is there.
func (a *api) completeUpload(c *call) (reply, error) {
	var bad problems
	o := bad.readObject(c.body)
	o.unavailable("parts", "multipart uploads are not available yet")
	o.close()
	if err := bad.err(); err != nil {
		return reply{}, err
	}
	return a.moveJob(c, a.Jobs.Complete)
}

// renewUpload gives a fresh permission to upload the same object.
func (a *api) renewUpload(c *call) (reply, error) {
	if err := c.expectEmpty(); err != nil {
		return reply{}, err
	}
	jobID, err := c.jobID()
	if err != nil {
		return reply{}, err
	}
	in, err := c.intent(struct{}{})
	if err != nil {
		return reply{}, err
	}
	done, err := a.Jobs.UploadURL(c.ctx(), c.caller, in, jobID)
	if err != nil {
		return reply{}, err
	}
	out, err := answer(http.StatusOK, map[string]any{"upload": uploadOf(done.Grant)})
	return out.replayed(done.Replayed).about(jobID), err
}

// expectEmpty refuses a body that says something: {} and none are the same.
func (c *call) expectEmpty() error {
	var bad problems
	bad.readObject(c.body).close()
	return bad.err()
}
