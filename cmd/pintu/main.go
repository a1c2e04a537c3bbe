// Command pintu is the command line of Pintu. Everything it does is in internal/cli.
package main

import (
	"os"

	"pintu/internal/cli"
)

func main() { os.Exit(cli.Main()) }
