package lambda

import (
	"os/exec"
	"runtime"
)

// spawner starts processes from one thread that lives as long as the broker. The death signal of Linux is bound to the
// thread that started a process, not to the whole program, and Go ends threads when it likes.
type spawner struct {
	requests chan spawn
}

type spawn struct {
	cmd  *exec.Cmd
	done chan<- error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawn)}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for r := range s.requests {
			r.done <- r.cmd.Start()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	done := make(chan error)
	s.requests <- spawn{cmd, done}
	return <-done
}

// close ends the thread. No process may be left.
func (s *spawner) close() { close(s.requests) }
