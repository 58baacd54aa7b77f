package main

import (
	"bufio"
	"fmt"
	"io"
)

// stage is how a part of this program talks to the one that measures it.
type stage struct {
	in  io.Reader
	out io.Writer
	buf *bufio.Reader
}

// reach says how far the part has come and waits until that has been noted.
func (s *stage) reach(name string) error {
	if _, err := fmt.Fprintln(s.out, name); err != nil {
		return err
	}
	if s.buf == nil {
		s.buf = bufio.NewReader(s.in)
	}
	_, err := s.buf.ReadString('\n')
	return err
}

// released waits until nobody needs the part any more.
func (s *stage) released() error {
	_, err := io.Copy(io.Discard, s.in)
	return err
}
