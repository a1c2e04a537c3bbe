// Command sweep runs every minute: it looks at whatever is due and sends its hint again.
package main

import "pintu/internal/app"

func main() { app.Start(app.Sweep) }
