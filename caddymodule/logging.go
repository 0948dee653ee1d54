package caddymodule

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/lockgateway/lockgateway/lock"
)

// Who knows the id of a lock can release it, so logs and traces have a hash
// instead, and that with a key: most ids are short enough to be guessed.

// randomKey is the key where none is set.
var randomKey = sync.OnceValue(func() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return key
})

// logSettings tells the log what the handler serves, and how.
func (h *Handler) logSettings() {
	h.logger.Info("serving locks",
		zap.String("backend", h.instance.module),
		zap.Any("settings", redacted(json.RawMessage(h.use.settings))),
		zap.Duration("max_wait", time.Duration(h.MaxWait)),
		zap.Int64("max_waiters", h.MaxWaiters),
		zap.Int64("max_pending", h.MaxPending),
		zap.String("health", h.Health),
		zap.String("page", h.Page),
		zap.Bool("log_lock_ids", h.LogLockIDs),
		zap.Bool("hash_key", h.HashKey != ""),
	)
}

// hashOf returns what stands for a lock in logs and traces.
func (h *Handler) hashOf(key lock.Key) string {
	secret := []byte(h.HashKey)
	if len(secret) == 0 {
		secret = randomKey()
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(key.Name()))
	return hex.EncodeToString(mac.Sum(nil)[:6])
}

// lockField is how a lock appears in the log.
func (h *Handler) lockField(key lock.Key) zap.Field {
	if h.LogLockIDs {
		return zap.String("lock", key.Name())
	}
	return zap.String("lock_hash", h.hashOf(key))
}

// byOperator tells the log of what an operator did to a lock, through one of the
// handlers that serve it.
func (i *instance) byOperator(did string, key lock.Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if n := len(i.uses); n > 0 {
		h := i.uses[n-1].handler
		h.logger.Warn(did, h.lockField(key))
	}
}

// limitLogEvery is how often the log tells that a limit is reached.
const limitLogEvery = time.Minute

// limitLog keeps the log from telling of each request that a limit refuses.
type limitLog struct {
	mu     sync.Mutex // guards all below
	last   map[string]time.Time
	untold map[string]int64 // of requests; the metrics have the exact number at any time
}

// reached tells the log that a limit refused a request.
func (l *limitLog) reached(logger *zap.Logger, limit *lock.LimitError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last, l.untold = make(map[string]time.Time), make(map[string]int64)
	}
	if time.Since(l.last[limit.Limit]) < limitLogEvery {
		l.untold[limit.Limit]++
		return
	}
	logger.Warn("a limit refuses requests; they get 503", zap.String("limit", limit.Limit), zap.Int64("max", limit.Max),
		zap.Int64("refused_since_the_last_line", l.untold[limit.Limit]+1))
	l.last[limit.Limit], l.untold[limit.Limit] = time.Now(), 0
}

// redacted returns settings as JSON that may be logged: without the secrets. (URLs
// have none, as the backends refuse those with more than a host and a port.)
func redacted(settings json.RawMessage) any {
	var value any
	if err := json.Unmarshal(settings, &value); err != nil {
		return nil // it came from json.Marshal
	}
	return redact(value, false)
}

// redact takes out what a secret is in. Whatever is below a name that says so is
// secret.
func redact(value any, secret bool) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = redact(member, secret || isSecret(name))
		}
	case []any:
		for i := range v {
			v[i] = redact(v[i], secret)
		}
	case string:
		if secret && v != "" {
			return "REDACTED"
		}
	case float64:
		if secret {
			return "REDACTED"
		}
	}
	return value
}

// isSecret tells by the name of a setting whether its value is one.
func isSecret(setting string) bool {
	setting = strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(setting))
	for _, word := range []string{"password", "passwd", "passphrase", "passcode", "token", "nkey", "secret", "apikey", "privatekey", "accesskey", "hashkey"} {
		if strings.Contains(setting, word) {
			return true
		}
	}
	return false
}
