package lambda

import "syscall"

// processAttributes puts a function into a process group of its own, so that Ctrl-C in a terminal reaches the stack
// only and the stack ends its functions in order. The kernel kills the function should the stack die without doing so.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
