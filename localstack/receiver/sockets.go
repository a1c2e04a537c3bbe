package receiver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"os"
	"syscall"
	"time"
)

// quiet keeps handshakes that fail on purpose out of test output.
var quiet = log.New(io.Discard, "", 0)

// unheard is a port of loopback that is taken and not listened at: connections to it are refused, and nobody
// else gets it meanwhile.
type unheard struct {
	addr string
	file *os.File
}

func listenTo() (*unheard, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	u := &unheard{file: os.NewFile(uintptr(fd), "refusing port")}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		u.Close()
		return nil, fmt.Errorf("bind socket: %w", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		u.Close()
		return nil, fmt.Errorf("name socket: %w", err)
	}
	inet, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		u.Close()
		return nil, fmt.Errorf("name socket: %T is no IPv4 address", name)
	}
	u.addr = fmt.Sprintf("127.0.0.1:%d", inet.Port)
	return u, nil
}

// Close gives the port back.
func (u *unheard) Close() { u.file.Close() }

// untrusted makes a certificate that is wrong in every way.
func untrusted() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make key: %w", err)
	}
	end := time.Now().Add(-time.Hour)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"other.example.com"}, NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
