package cli

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"pintu/internal/client"
)

// uploadMeter shows an upload: a bar on a terminal, else one line at its start.
type uploadMeter struct {
	env  *Env
	file client.File
	bars *mpb.Progress
	bar  *mpb.Bar
}

func newUploadMeter(env *Env, file client.File) *uploadMeter {
	return &uploadMeter{env: env, file: file}
}

// sent is told how many bytes are on their way; it goes back when the upload starts over.
func (m *uploadMeter) sent(n int64) {
	switch {
	case m.bars == nil:
		m.start()
	case m.bar != nil:
		m.bar.SetCurrent(n)
	}
}

func (m *uploadMeter) start() {
	m.bars = newBars(m.env)
	if !m.env.Terminal {
		fmt.Fprintf(m.env.Stderr, "uploading %s, %d bytes\n", m.file.Name, m.file.SizeBytes)
		return
	}
	m.bar = m.bars.AddBar(m.file.SizeBytes,
		mpb.PrependDecorators(decor.Name("upload "), decor.CountersKibiByte("% .1f / % .1f")),
		mpb.AppendDecorators(decor.Percentage()))
}

func (m *uploadMeter) done() {
	if m.bar != nil {
		m.bar.Abort(false) // ends it wherever it is; what came of it is told in words
	}
	if m.bars != nil {
		m.bars.Wait()
	}
}

// newBars draws to stderr, which is known to be a terminal by then.
func newBars(env *Env) *mpb.Progress {
	return mpb.New(mpb.WithOutput(env.Stderr), mpb.WithAutoRefresh())
}

// waitFor waits for a job and shows how it gets on: a bar over its bytes on a terminal, else a line for
// each stage.
func waitFor(ctx context.Context, env *Env, api *client.Client, jobID string) (client.Job, error) {
	m := &jobMeter{env: env}
	j, err := api.Wait(ctx, jobID, m.changed)
	m.done()
	return j, hint(err, "the job goes on by itself; `pintu job wait %s` waits for it again", jobID)
}

type jobMeter struct {
	env     *Env
	stalled bool
	stage   string
	bars    *mpb.Progress
	bar     *mpb.Bar
	rows    atomic.Pointer[client.Progress] // read by the bar when it is drawn
}

func (m *jobMeter) changed(j client.Job) {
	if j.Stalled != nil && !m.stalled {
		fmt.Fprintf(m.env.Stderr, "the job is stalled: %s\nhint: an operator has to look at queue %s; the job goes on after that\n", j.Stalled.Reason, j.Stalled.Queue)
	}
	m.stalled = j.Stalled != nil
	if m.env.Terminal && j.Progress.BytesTotal != nil {
		m.draw(j.Progress)
		return
	}
	if stage := statusText(j); stage != m.stage && !j.Status.Terminal() {
		m.stage = stage
		fmt.Fprintf(m.env.Stderr, "%s: %s\n", j.ID, stage)
	}
}

func (m *jobMeter) draw(p client.Progress) {
	m.rows.Store(&p)
	if m.bar == nil {
		m.bars = newBars(m.env)
		rows := decor.Any(func(decor.Statistics) string {
			p := m.rows.Load()
			return fmt.Sprintf("rows %d accepted, %d rejected ", p.RowsAccepted, p.RowsRejected)
		})
		m.bar = m.bars.AddBar(*p.BytesTotal, mpb.PrependDecorators(rows), mpb.AppendDecorators(decor.Percentage()))
	}
	m.bar.SetCurrent(p.BytesProcessed)
}

func (m *jobMeter) done() {
	if m.bar != nil {
		m.bar.Abort(false)
		m.bars.Wait()
	}
}
