package importtest

import "testing"

func (w *world) audit(t testing.TB) { t.Helper() }
