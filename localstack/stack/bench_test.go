package stack

import (
	"io"
	"net/http"
	"testing"
)

// BenchmarkRequest measures a request through gateway, Runtime API and a warm function and back.
func BenchmarkRequest(b *testing.B) {
	s, err := Start(b.Context(), Config{Root: root})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for b.Loop() {
		r, err := client.Get(s.URL() + "/v1/health")
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
}

// BenchmarkStart measures an empty start: stores, resources, and the first answer of a function.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s, err := Start(b.Context(), Config{Root: root})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
