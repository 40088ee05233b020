// A witness of C2SP tlog-witness for the test of audit.md. It is no witness for anything else: its
// memory ends with the process.
//
// It guarantees: it cosigns a tree head only if the proof leads there from the one that it cosigned
// last (tlog.CheckTree), so it never cosigns two histories. It prints its verifier key, then its
// address.
//
//	witness NAME LOG.vkey
package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// cosigner is the witness: its keys, and the last tree head of each log.
type cosigner struct {
	name  string
	id    []byte
	key   ed25519.PrivateKey
	known note.Verifiers
	lock  sync.Mutex
	last  map[string]tlog.Tree
}

func (c *cosigner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err != nil || r.Method != "POST" || r.URL.Path != "/add-checkpoint" {
		http.Error(w, "POST /add-checkpoint", 400)
		return
	}
	code, answer := c.answer(string(body))
	if code == 409 {
		w.Header().Set("Content-Type", "text/x.tlog.size")
	}
	w.WriteHeader(code)
	io.WriteString(w, answer)
}

func (c *cosigner) answer(body string) (int, string) {
	parts := strings.SplitN(body, "\n\n", 2)
	lines := strings.Split(parts[0], "\n")
	old, err := strconv.ParseInt(strings.TrimPrefix(lines[0], "old "), 10, 64)
	if len(parts) != 2 || err != nil || lines[0] != fmt.Sprintf("old %d", old) || len(lines) > 64 {
		return 400, "no request\n"
	}
	var proof tlog.TreeProof
	for _, line := range lines[1:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return 400, "no hash\n"
		}
		proof = append(proof, hash)
	}
	opened, err := note.Open([]byte(parts[1]), c.known)
	if err != nil {
		return 403, err.Error() + "\n"
	}
	tree, err := tlog.ParseTree([]byte("go.sum database tree\n" +
		strings.SplitN(opened.Text, "\n", 2)[1]))
	if err != nil || old > tree.N {
		return 400, "no tree head, or an old size that is greater\n"
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	last := c.last[opened.Sigs[0].Name]
	if old != last.N || old == tree.N && last.Hash != tree.Hash {
		return 409, fmt.Sprintf("%d\n", last.N)
	}
	if old == 0 || old == tree.N {
		if len(proof) != 0 {
			return 422, "the proof must be empty\n"
		}
	} else if err := tlog.CheckTree(proof, tree.N, tree.Hash, last.N, last.Hash); err != nil {
		return 422, err.Error() + "\n"
	}
	c.last[opened.Sigs[0].Name] = tree
	return 200, c.line(opened.Text)
}

// line is the cosignature of a tree head.
func (c *cosigner) line(text string) string {
	now := uint64(time.Now().Unix())
	message := fmt.Sprintf("cosignature/v1\ntime %d\n%s", now, text)
	signature := binary.BigEndian.AppendUint64(append([]byte{}, c.id...), now)
	signature = append(signature, ed25519.Sign(c.key, []byte(message))...)
	return fmt.Sprintf("\u2014 %s %s\n", c.name, base64.StdEncoding.EncodeToString(signature))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "witness:", err)
		os.Exit(2)
	}
}

func main() {
	name, log := os.Args[1], os.Args[2]
	text, err := os.ReadFile(log)
	must(err)
	var list []note.Verifier
	for _, line := range strings.Fields(string(text)) {
		verifier, err := note.NewVerifier(line)
		must(err)
		list = append(list, verifier)
	}
	public, key, err := ed25519.GenerateKey(nil)
	must(err)
	typed := append([]byte{4}, public...)
	sum := sha256.Sum256(append([]byte(name+"\n"), typed...))
	c := &cosigner{name: name, id: sum[:4], key: key, known: note.VerifierList(list...),
		last: map[string]tlog.Tree{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	fmt.Printf("%s+%x+%s\n", name, c.id, base64.StdEncoding.EncodeToString(typed))
	fmt.Printf("http://%s\n", listener.Addr())
	must(http.Serve(listener, c))
}
