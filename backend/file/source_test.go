package file_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/homeostat/homeostat/backend/file"
	"github.com/homeostat/homeostat/indexer"
	"github.com/homeostat/homeostat/informer"
	"github.com/homeostat/homeostat/reflector"
	"github.com/homeostat/homeostat/retry"
	"github.com/stretchr/testify/require"
)

var _ reflector.ListWatcher[*app] = (*file.Source[*app])(nil)

func TestR27_AFileReplacedByRenameIsSeenEachTime(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", yamlOf("a", 0))
	c := follow(t, newSource(t, dir, quick()))
	c.becomes(state{"a": 0})
	for i := 1; i <= 5; i++ {
		replace(t, dir, "a.yaml", yamlOf("a", i))
		c.becomes(state{"a": i})
	}
}

func TestR27_AHalfWrittenFileKeepsTheLastGoodState(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", yamlOf("a", 1)+"---\n"+yamlOf("b", 1))
	src := newSource(t, dir, quick())
	c := follow(t, src)
	c.becomes(state{"a": 1, "b": 1})

	for _, half := range []string{"", "name: a\nsize: 2\n---\nname: [", "name: a\nsi"} {
		write(t, dir, "a.yaml", half)
		got := faults(t, src, 1)[0]
		require.Equal(t, filepath.Join(dir, "a.yaml"), got.File)
		require.False(t, got.Since.IsZero())
		require.Subset(t, list(t, src), state{"a": 1, "b": 1})
		// Another file is not held up by it.
		write(t, dir, "other.yaml", yamlOf("other", len(half)))
		c.becomes(state{"a": 1, "b": 1, "other": len(half)})
	}
	write(t, dir, "a.yaml", yamlOf("a", 2))
	c.becomes(state{"a": 2, "other": 10})
	faults(t, src, 0)
	for _, s := range c.seen() {
		require.Contains(t, s, "a")
	}
}

func TestChangesInPlaceAreSeen(t *testing.T) {
	dir := t.TempDir()
	c := follow(t, newSource(t, dir, quick()))
	c.becomes(state{})
	write(t, dir, "a.yaml", yamlOf("a", 1))
	c.becomes(state{"a": 1})
	write(t, dir, "b.json", `{"name":"b"}`)
	c.becomes(state{"a": 1, "b": 0})
	write(t, dir, "a.yaml", yamlOf("a", 2)) // the same size, and within one tick of many clocks
	c.becomes(state{"a": 2, "b": 0})
	write(t, dir, "a.yaml", yamlOf("c", 3))
	c.becomes(state{"c": 3, "b": 0})
	require.NoError(t, os.Remove(filepath.Join(dir, "b.json")))
	c.becomes(state{"c": 3})
	require.NoError(t, os.Rename(filepath.Join(dir, "a.yaml"), filepath.Join(dir, "z.yaml")))
	write(t, dir, "y.yaml", yamlOf("y", 1))
	c.becomes(state{"c": 3, "y": 1})
}

// A mounted config map: the files are links into ..data, which is a link to a
// folder, and the update is a rename over ..data.
func TestAFolderSwappedBehindALinkIsSeen(t *testing.T) {
	dir := t.TempDir()
	version := func(n int) {
		folder := fmt.Sprintf("..v%d", n)
		require.NoError(t, os.Mkdir(filepath.Join(dir, folder), 0o755))
		write(t, filepath.Join(dir, folder), "a.yaml", yamlOf("a", n))
		write(t, filepath.Join(dir, folder), "b.yaml", yamlOf("b", n))
		require.NoError(t, os.Symlink(folder, filepath.Join(dir, "..tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")))
	}
	version(1)
	for _, name := range []string{"a.yaml", "b.yaml"} {
		require.NoError(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	c := follow(t, newSource(t, dir, quick()))
	c.becomes(state{"a": 1, "b": 1})
	for n := 2; n <= 4; n++ {
		version(n)
		c.becomes(state{"a": n, "b": n})
	}
	for _, s := range c.seen() {
		require.Equal(t, s["a"], s["b"], "two versions in one state")
	}
}

func TestAFolderThatIsItselfALinkIsSeenToMove(t *testing.T) {
	root := t.TempDir()
	for i, name := range []string{"blue", "green"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, name), 0o755))
		write(t, filepath.Join(root, name), "a.yaml", yamlOf("a", i))
	}
	link := filepath.Join(root, "current")
	point := func(to string) {
		require.NoError(t, os.Symlink(to, link+".tmp"))
		require.NoError(t, os.Rename(link+".tmp", link))
	}
	point("blue")
	c := follow(t, newSource(t, link, quick()))
	c.becomes(state{"a": 0})
	point("green")
	c.becomes(state{"a": 1})
	// The watch has moved along.
	write(t, filepath.Join(root, "green"), "b.yaml", yamlOf("b", 7))
	c.becomes(state{"a": 1, "b": 7})
}

func TestAPollSeesWhatNoWatchTells(t *testing.T) {
	elsewhere, dir := t.TempDir(), t.TempDir()
	write(t, elsewhere, "real.yaml", yamlOf("a", 1))
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "real.yaml"), filepath.Join(dir, "a.yaml")))
	opts := quick()
	opts.Poll = 10 * time.Millisecond
	c := follow(t, newSource(t, dir, opts))
	c.becomes(state{"a": 1})
	write(t, elsewhere, "real.yaml", yamlOf("a", 2))
	c.becomes(state{"a": 2})
}

func TestAFolderThatIsGoneIsAnErrorAndNotEmptiness(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	src := newSource(t, dir, quick())
	_, err := src.List(t.Context(), reflector.ListOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, dir)

	require.NoError(t, os.Mkdir(dir, 0o755))
	write(t, dir, "a.yaml", yamlOf("a", 1))
	c := follow(t, src)
	c.becomes(state{"a": 1})
	require.NoError(t, os.RemoveAll(dir))
	<-c.ended
	require.Error(t, c.err)
	// What was seen of a folder on its way out is a state like any other; the end is an error.

	require.NoError(t, os.Mkdir(dir, 0o755))
	write(t, dir, "a.yaml", yamlOf("a", 2))
	follow(t, src).becomes(state{"a": 2})
}

func TestAnInformerFindsAFolderThatCameBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	becomes := informed(t, newSource(t, dir, quick()))
	for i := range 3 {
		require.NoError(t, os.Mkdir(dir, 0o755))
		write(t, dir, "a.yaml", yamlOf("a", i))
		becomes(state{"a": i})
		require.NoError(t, os.RemoveAll(dir))
	}
}

// informed runs an informer over a source, which tries again where a watch alone
// ends. It answers a function that waits until the cache holds just what is wanted.
func informed(t *testing.T, src *file.Source[*app]) (becomes func(state)) {
	in := informer.New(src, &informer.Options{Backoff: retry.Backoff{Base: time.Millisecond, Max: 5 * time.Millisecond}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- in.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return func(want state) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.NoError(t, in.Until(ctx, func(s *indexer.Snapshot[*app]) bool {
			got := state{}
			for key, a := range s.All() {
				got[key] = a.Size
			}
			return maps.Equal(got, want)
		}), "never %v", want)
	}
}

func TestDuplicatesNameBothFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "b.yaml", "# b\n"+yamlOf("x", 2)+"---\n"+yamlOf("y", 2))
	src := newSource(t, dir, quick())
	require.Equal(t, state{"x": 2, "y": 2}, list(t, src))

	write(t, dir, "a.yaml", yamlOf("z", 1)+"---\n"+yamlOf("x", 1))
	require.Equal(t, state{"x": 2, "y": 2, "z": 1}, list(t, src), "the one that was there first stays")
	got := faults(t, src, 1)[0]
	require.ErrorIs(t, got, file.ErrDuplicate)
	require.Equal(t, filepath.Join(dir, "a.yaml"), got.File)
	require.Equal(t, 4, got.Line)
	require.Contains(t, got.Error(), filepath.Join(dir, "b.yaml")+", line 2")

	// A new reader decides by name.
	require.Equal(t, state{"x": 1, "y": 2, "z": 1}, list(t, newSource(t, dir, quick())))

	// It heals when the first is taken away, by either of them.
	replace(t, dir, "b.yaml", yamlOf("y", 3))
	require.Equal(t, state{"x": 1, "y": 3, "z": 1}, list(t, src))
	require.Empty(t, src.Faults())

	// Within one file, too.
	replace(t, dir, "b.yaml", yamlOf("y", 3)+"---\n"+yamlOf("y", 4))
	require.Equal(t, state{"x": 1, "y": 3, "z": 1}, list(t, src))
	require.ErrorIs(t, faults(t, src, 1)[0], file.ErrDuplicate)
}

func TestVersionsAreOfTheContent(t *testing.T) {
	dir := t.TempDir()
	src := newSource(t, dir, quick())
	versionOf := func(content string) string {
		replace(t, dir, "a.yaml", content)
		page, err := src.List(t.Context(), reflector.ListOptions{})
		require.NoError(t, err)
		require.Len(t, page.Items, 1)
		require.Empty(t, page.Items[0].ID)
		return string(page.Items[0].Version)
	}
	first := versionOf("name: a\nsize: 1\n")
	require.NotEmpty(t, first)
	require.Equal(t, first, versionOf("# the same\n{size: 1, name: \"a\"}\n"))
	require.NotEqual(t, first, versionOf("name: a\nsize: 2\n"))
	require.Equal(t, first, versionOf("name: a\nsize: 1\n"))

	// What was only reformatted is told to nobody.
	c := follow(t, src)
	c.becomes(state{"a": 1})
	replace(t, dir, "a.yaml", "size: 1\nname: a\n")
	write(t, dir, "b.yaml", yamlOf("b", 1))
	c.becomes(state{"a": 1, "b": 1})
	require.LessOrEqual(t, len(c.seen()), 2)
}

func TestUnreadableFilesKeepWhatTheySaid(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "real", yamlOf("a", 1))
	link := filepath.Join(dir, "a.yaml")
	require.NoError(t, os.Symlink("real", link))
	src := newSource(t, dir, quick())
	require.Equal(t, state{"a": 1}, list(t, src))

	require.NoError(t, os.Remove(filepath.Join(dir, "real"))) // the link leads nowhere
	require.Equal(t, state{"a": 1}, list(t, src))
	got := faults(t, src, 1)[0]
	require.ErrorIs(t, got, os.ErrNotExist)
	require.Zero(t, got.Line)

	require.Equal(t, state{"a": 1}, list(t, src))
	require.Equal(t, got.Since, src.Faults()[0].Since, "the same fault, since the same time")

	write(t, dir, "real", yamlOf("a", 2))
	require.Equal(t, state{"a": 2}, list(t, src))
	require.Empty(t, src.Faults())

	require.NoError(t, os.Remove(link))
	require.Eventually(t, func() bool { return len(list(t, src)) == 0 }, 10*time.Second, time.Millisecond, "a link that is gone is no fault")
	require.Empty(t, src.Faults())
}

// A file is read again when its size, its time or its number has changed, and not
// otherwise, unless it was written so shortly before that its time proves nothing.
func TestWhatIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	src := newSource(t, dir, quick())
	long := time.Now().Add(-time.Hour)
	writeAt := func(size int, at time.Time) {
		write(t, dir, "a.yaml", yamlOf("a", size))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	writeAt(1, long)
	require.Equal(t, state{"a": 1}, list(t, src))
	writeAt(2, long)
	require.Equal(t, state{"a": 1}, list(t, src), "nothing tells that it is another content")
	writeAt(33, long)
	require.Equal(t, state{"a": 33}, list(t, src), "another size")
	writeAt(44, long.Add(time.Nanosecond))
	require.Equal(t, state{"a": 44}, list(t, src), "another time")
	replace(t, dir, "a.yaml", yamlOf("a", 55))
	require.NoError(t, os.Chtimes(path, long, long.Add(time.Nanosecond)))
	require.Equal(t, state{"a": 55}, list(t, src), "another file")

	now := time.Now()
	writeAt(66, now)
	require.Equal(t, state{"a": 66}, list(t, src))
	writeAt(77, now)
	require.Equal(t, state{"a": 77}, list(t, src), "within one tick of a coarse clock")
}

func TestAFolderMadeAnewIsWatched(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "manifests")
	require.NoError(t, os.Mkdir(dir, 0o755))
	write(t, dir, "a.yaml", yamlOf("a", 1))
	becomes := informed(t, newSource(t, dir, quick()))
	becomes(state{"a": 1})
	require.NoError(t, os.Mkdir(filepath.Join(root, "new"), 0o755))
	write(t, filepath.Join(root, "new"), "a.yaml", yamlOf("a", 2))
	require.NoError(t, os.Rename(dir, filepath.Join(root, "old")))
	require.NoError(t, os.Rename(filepath.Join(root, "new"), dir))
	becomes(state{"a": 2})
	write(t, dir, "b.yaml", yamlOf("b", 3))
	becomes(state{"a": 2, "b": 3})
}

func TestFoldersAndTheLikeAreNoFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.yaml"), 0o755))
	write(t, filepath.Join(dir, "folder.yaml"), "a.yaml", yamlOf("deep", 1))
	require.Empty(t, list(t, newSource(t, dir, quick())))
}

func TestAFaultIsLoggedOnce(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	opts := quick()
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	src := newSource(t, dir, opts)
	write(t, dir, "a.yaml", "name: [\n")
	for range 5 {
		list(t, src)
	}
	require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	require.Contains(t, log.String(), "level=WARN")
	require.Contains(t, log.String(), "line=1")
	require.Contains(t, log.String(), filepath.Join(dir, "a.yaml"))

	replace(t, dir, "a.yaml", "name: 1\nsise: 1\n") // another fault
	list(t, src)
	require.Equal(t, 2, strings.Count(log.String(), "\n"), log.String())
	replace(t, dir, "a.yaml", yamlOf("a", 1))
	list(t, src)
	list(t, src)
	require.Equal(t, 3, strings.Count(log.String(), "\n"), log.String())
	require.Contains(t, log.String(), "level=INFO")
}

func TestSeveralConsumersShareASource(t *testing.T) {
	dir := t.TempDir()
	src := newSource(t, dir, quick())
	var consumers []*consumer
	for range 4 {
		consumers = append(consumers, follow(t, src))
	}
	for i := range 20 {
		replace(t, dir, fmt.Sprintf("%d.yaml", i%3), yamlOf(fmt.Sprint("o", i%3), i))
	}
	want := state{"o0": 18, "o1": 19, "o2": 17}
	for _, c := range consumers {
		c.becomes(want)
	}
	require.Equal(t, want, list(t, src))
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	src := newSource(t, t.TempDir(), quick())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	batches := 0
	for _, err := range src.Watch(ctx, reflector.WatchOptions{Initial: true}) {
		require.NoError(t, err)
		batches++
		cancel()
	}
	require.Equal(t, 1, batches)

	for range src.Watch(t.Context(), reflector.WatchOptions{Initial: true}) {
		break // and with its reader
	}
	_, err := src.List(ctx, reflector.ListOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestKeysOnly(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", yamlOf("a", 1))
	src := newSource(t, dir, quick())
	page, err := src.List(t.Context(), reflector.ListOptions{KeysOnly: true})
	require.NoError(t, err)
	require.Equal(t, "a", page.Items[0].Key)
	require.NotEmpty(t, page.Items[0].Version)
	require.Nil(t, page.Items[0].Object)
	require.Equal(t, state{"a": 1}, list(t, src), "the source itself still has it")
}

// Who replaces a file by taking the old one away first does not mean that all it
// declared shall go.
func TestAFileThatIsGoneForAMomentIsInForce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.yaml", yamlOf("a", 1))
	write(t, dir, "b.yaml", yamlOf("b", 1))
	opts := quick()
	opts.Settle = 300 * time.Millisecond // gone for 3 s
	src := newSource(t, dir, opts)
	c := follow(t, src)
	c.becomes(state{"a": 1, "b": 1})

	require.NoError(t, os.Rename(filepath.Join(dir, "a.yaml"), filepath.Join(dir, "a.yaml~")))
	require.Equal(t, state{"a": 1, "b": 1}, list(t, src))
	write(t, dir, "b.yaml", yamlOf("b", 2))
	c.becomes(state{"a": 1, "b": 2})
	write(t, dir, "a.yaml", yamlOf("a", 2))
	c.becomes(state{"a": 2, "b": 2})
	for _, s := range c.seen() {
		require.Contains(t, s, "a")
	}

	// Under another name it is the same at once, and no duplicate.
	require.NoError(t, os.Rename(filepath.Join(dir, "a.yaml"), filepath.Join(dir, "z.yaml")))
	write(t, dir, "z.yaml", yamlOf("a", 3))
	require.Equal(t, state{"a": 3, "b": 2}, list(t, src))
	require.Empty(t, src.Faults())

	// And what is gone goes, without any further sign.
	require.NoError(t, os.Remove(filepath.Join(dir, "z.yaml")))
	c.becomes(state{"b": 2})
}

func TestAFileAtFaultIsThatUnderAnotherNameToo(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", yamlOf("a", 1))
	src := newSource(t, dir, quick())
	require.Equal(t, state{"a": 1}, list(t, src))
	write(t, dir, "a.yaml", "name: [\n")
	require.Equal(t, state{"a": 1}, list(t, src))
	require.NoError(t, os.Rename(filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")))
	for range 3 {
		require.Equal(t, state{"a": 1}, list(t, src))
	}
	require.Equal(t, filepath.Join(dir, "b.yaml"), faults(t, src, 1)[0].File)
}

// The folder is read when it has been quiet for Settle, so that a file which is
// written in steps is read when it is whole.
func TestAFileWrittenInStepsIsReadWhenItIsWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opts := quick()
	opts.Settle = time.Second
	c := follow(t, newSource(t, dir, opts))
	c.becomes(state{})
	f, err := os.Create(filepath.Join(dir, "a.yaml"))
	require.NoError(t, err)
	defer f.Close()
	slow := time.NewTicker(10 * time.Millisecond) // a writer that takes its time
	defer slow.Stop()
	want, began := state{}, time.Now()
	for i := range 20 {
		want[fmt.Sprint("o", i)] = i
		fmt.Fprintf(f, "---\n%s", yamlOf(fmt.Sprint("o", i), i))
		<-slow.C
	}
	took := time.Since(began)
	c.becomes(want)
	if took < opts.Settle { // else the machine stood still, and the writer with it
		require.Len(t, c.seen(), 2, "nothing, and then all of it in one step")
	}
}

func TestAPanicOfTheTypesOwnCodeIsAFaultLikeAnyOther(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	opts := quick()
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	src := newSource(t, dir, opts)
	write(t, dir, "a.yaml", "name: panic\n")
	for range 3 {
		list(t, src)
	}
	fault := faults(t, src, 1)[0]
	require.ErrorIs(t, fault, file.ErrInvalid)
	var p *file.PanicError
	require.ErrorAs(t, fault, &p)
	require.Equal(t, "told to", p.Value)
	require.NotContains(t, fault.Error(), "goroutine")
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"), "once")
	require.Contains(t, log.String(), "Validate", "with the stack")
}

// A look that takes long holds up nobody who only asks, and nobody who is called off.
func TestAFileThatCannotBeReadInTimeIsAFault(t *testing.T) {
	dir := t.TempDir()
	if os.Symlink("/proc/kmsg", filepath.Join(dir, "endless.yaml")) != nil {
		t.Skip("no links here")
	}
	if _, err := os.Stat("/proc/kmsg"); err != nil {
		t.Skip("no file here that blocks its reader")
	}
	write(t, dir, "a.yaml", yamlOf("a", 1))
	src := newSource(t, dir, quick())
	require.Equal(t, state{"a": 1}, list(t, src))
	require.NotEmpty(t, src.Faults())
}

func TestFaultsAreJSON(t *testing.T) {
	f := file.Fault{File: "a.yaml", Line: 7, Err: errors.New("boom"), Since: time.Unix(0, 0).UTC()}
	text, err := json.Marshal(f)
	require.NoError(t, err)
	require.JSONEq(t, `{"file":"a.yaml","line":7,"error":"boom","since":"1970-01-01T00:00:00Z"}`, string(text))
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	_, err := file.New("x", (*app).Key, &file.Options{Poll: -1, Settle: -1, MaxSize: -1})
	require.ErrorIs(t, err, file.ErrInvalidOptions)
	for _, field := range []string{"Poll", "Settle", "MaxSize"} {
		require.ErrorContains(t, err, field)
	}
	_, err = file.New("", (*app).Key, nil)
	require.Error(t, err)
	_, err = file.New[*app]("x", nil, nil)
	require.Error(t, err)
}
