package stack

import "pintu/localstack/clock"

// Clock is the movable clock of a stack's tables, queues and schedules. Function processes and S3 keep the machine's.
type Clock = clock.Clock

// NewClock gives a clock that shows the machine's time.
func NewClock() *Clock { return clock.New() }
