package embedded

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// serverLog is the server's log. It implements server.Logger.
type serverLog struct {
	logger func() *zap.Logger
	level  zapcore.Level // of what is worth a notice

	// fatal receives the first thing that the server cannot go on with.
	fatal chan error
}

// subjects are where lock ids are in, and whoever knows one can release the lock.
var subjects = regexp.MustCompile(`(\$KV|lockgateway)\.[^\s"'\])]+`)

func (l *serverLog) write(level zapcore.Level, format string, v []any) {
	entry := l.logger().Check(level, "NATS server")
	if entry == nil {
		return
	}
	entry.Write(zap.String("message", harmless(format, v)))
}

// harmless is what the server says, without subjects.
func harmless(format string, v []any) string {
	return strings.TrimSpace(subjects.ReplaceAllString(fmt.Sprintf(format, v...), "$1.…"))
}

// Noticef implements server.Logger.
func (l *serverLog) Noticef(format string, v ...any) { l.write(l.level, format, v) }

// Warnf implements server.Logger.
func (l *serverLog) Warnf(format string, v ...any) { l.write(zapcore.WarnLevel, format, v) }

// Errorf implements server.Logger. That another node does not run is an error to the
// server; what is one to an operator is told by who watches the server.
func (l *serverLog) Errorf(format string, v ...any) { l.write(zapcore.WarnLevel, format, v) }

// Fatalf implements server.Logger. The process goes on: whoever started the server
// hears of it.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.write(zapcore.ErrorLevel, format, v)
	select {
	case l.fatal <- errors.New(harmless(format, v)):
	default: // it is not the first
	}
}

// Debugf implements server.Logger. The server does not call it: what it would tell
// is about single messages.
func (*serverLog) Debugf(string, ...any) {}

// Tracef implements server.Logger. The server does not call it.
func (*serverLog) Tracef(string, ...any) {}
