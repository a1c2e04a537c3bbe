package netguard

import (
	"fmt"
	"strings"
)

// Hosts is a list of hosts: "example.com" is that host alone, ".example.com" is it and every name below it. The
// zero value is empty.
type Hosts struct{ entries map[string]bool }

// ParseHosts normalises the entries of a list as hosts of URLs are. The error names the entry.
func ParseHosts(entries ...string) (Hosts, error) {
	h := Hosts{entries: map[string]bool{}}
	for _, e := range entries {
		rest, suffix := strings.CutPrefix(e, ".")
		unbracketed, bracketed := strings.CutPrefix(rest, "[")
		host, addr, r := canonicalHost(strings.TrimSuffix(unbracketed, "]"), bracketed)
		if r != nil || suffix && addr.IsValid() {
			return Hosts{}, fmt.Errorf("%q is neither a host nor a dot and a domain", e)
		}
		if suffix {
			host = "." + host
		}
		h.entries[host] = true
	}
	return h, nil
}

// Empty tells whether the list has no entry.
func (h Hosts) Empty() bool { return len(h.entries) == 0 }

// Match tells whether a normalised host is on the list.
func (h Hosts) Match(host string) bool {
	if h.entries[host] {
		return true
	}
	for rest, more := host, true; more; _, rest, more = strings.Cut(rest, ".") {
		if h.entries["."+rest] {
			return true
		}
	}
	return false
}
