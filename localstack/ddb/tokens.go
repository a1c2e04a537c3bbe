package ddb

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"
)

// tokenLife is how long a ClientRequestToken protects a transaction that went through.
const tokenLife = 10 * time.Minute

// spentToken is a token whose transaction was committed.
type spentToken struct {
	Token   string
	Digest  string // of the transaction
	Expires time.Time
}

// tokenCache remembers client request tokens.
type tokenCache struct {
	mu    sync.Mutex
	known map[string]*spentToken // Expires is zero while the transaction runs
	queue []*spentToken          // committed, by expiry
}

func newTokenCache() tokenCache { return tokenCache{known: map[string]*spentToken{}} }

// claim takes token for a transaction. With replay the same transaction was committed before and must not be again.
func (c *tokenCache) claim(token, digest string, now time.Time) (replay bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(now)
	was := c.known[token]
	switch {
	case was == nil:
		c.known[token] = &spentToken{Token: token, Digest: digest}
		return false, nil
	case was.Digest != digest:
		return false, &apiError{code: "IdempotentParameterMismatchException", message: "The client request token was used with other parameters"}
	case was.Expires.IsZero():
		return false, &apiError{code: "TransactionInProgressException", message: "The transaction with the given request token is already in progress."}
	}
	return true, nil
}

// settle ends a claim: with a spent token it stays known, with nil the transaction failed and may be tried again.
func (c *tokenCache) settle(token string, spent *spentToken) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if spent == nil {
		delete(c.known, token)
		return
	}
	c.known[token] = spent
	c.queue = append(c.queue, spent)
}

// forget drops what has expired.
func (c *tokenCache) forget(now time.Time) {
	for len(c.queue) > 0 && !now.Before(c.queue[0].Expires) {
		delete(c.known, c.queue[0].Token)
		c.queue = c.queue[1:]
	}
}

func (c *tokenCache) restore(t spentToken) { c.settle(t.Token, &t) }

// spent lists the committed tokens.
func (c *tokenCache) spent() []spentToken {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []spentToken
	for _, t := range c.queue {
		list = append(list, *t)
	}
	return list
}

// digest identifies a transaction by its content: requests are encoded again, because the SDK writes maps in any order.
func digest(requests any) (string, error) {
	b, err := marshal(requests)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
