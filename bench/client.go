package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// client is the least HTTP/1.1 client that keeps a connection alive and reads
// every answer to its end. It shares the machine with the server, so what it
// saves the server gets.
type client struct {
	conn   net.Conn
	buffer []byte
}

// answerTimeout is for the answers that come at once.
const answerTimeout = 20 * time.Second

func dial(address string) (*client, error) { return dialFrom("", address) }

// dialFrom connects from an address of this machine; with the empty one the
// system picks it.
func dialFrom(source, address string) (*client, error) {
	dialer := net.Dialer{Timeout: answerTimeout, KeepAlive: -1}
	if source != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(source)}
	}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn}, nil
}

// requestFor is a GET request as bytes, which are made once and sent often.
func requestFor(address, path string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, address)
}

func (c *client) send(request []byte) error {
	_, err := c.conn.Write(request)
	return err
}

// do sends a request and returns the body of its answer, which is valid until
// the next call.
func (c *client) do(request []byte) ([]byte, error) {
	if err := c.send(request); err != nil {
		return nil, err
	}
	return c.receive()
}

var (
	statusOK      = []byte("HTTP/1.1 200 ")
	endOfHead     = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
)

// receive reads one answer and returns its body. Anything but a 200 that tells
// its length is an error.
func (c *client) receive() ([]byte, error) {
	if c.buffer == nil {
		c.buffer = make([]byte, 4096)
	}
	n, body, whole := 0, 0, -1 // bytes read, where the body starts, where it ends
	for whole < 0 || n < whole {
		if n == len(c.buffer) {
			return nil, errors.New("an answer is longer than any expected")
		}
		m, err := c.conn.Read(c.buffer[n:])
		if err != nil {
			return nil, err
		}
		n += m
		if whole >= 0 {
			continue
		}
		end := bytes.Index(c.buffer[:n], endOfHead)
		if end < 0 {
			continue
		}
		body = end + len(endOfHead)
		length, err := lengthIn(c.buffer[:end+2])
		if err != nil {
			return nil, fmt.Errorf("%w: %q", err, c.buffer[:n])
		}
		whole = body + length
	}
	if n > whole {
		return nil, fmt.Errorf("more than an answer came: %q", c.buffer[:n])
	}
	return c.buffer[body:whole], nil
}

func lengthIn(head []byte) (int, error) {
	if !bytes.HasPrefix(head, statusOK) {
		return 0, errors.New("an answer is not a 200")
	}
	_, rest, ok := bytes.Cut(head, contentLength)
	if !ok {
		return 0, errors.New("an answer does not tell its length")
	}
	digits, _, _ := bytes.Cut(rest, []byte("\r\n"))
	return strconv.Atoi(string(digits))
}

// expect fails unless the answer's body starts with want.
func (c *client) expect(request []byte, want string) error {
	body, err := c.do(request)
	if err == nil && !bytes.HasPrefix(body, []byte(want)) {
		err = fmt.Errorf("%s is answered, not %s", body, want)
	}
	return err
}

// close resets the connection: closed politely, thousands of them would keep
// their ports from the next measurement for a minute.
func (c *client) close() {
	if tcp, ok := c.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.conn.Close()
}
