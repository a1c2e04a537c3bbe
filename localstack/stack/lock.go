package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock keeps a directory of state for this stack alone until it is closed: two that write one journal would leave
// neither's state. The system gives the lock back when the process dies, however it does.
func (s *Stack) lock(data string) error {
	f, err := os.OpenFile(filepath.Join(data, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock %s: %w", data, err)
	}
	s.onClose(f.Close)
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("another stack is running on %s; end it, or choose another directory", data)
	} else if err != nil {
		return fmt.Errorf("lock %s: %w", data, err)
	}
	return nil
}
