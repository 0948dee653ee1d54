package replicated

import "time"

// The goroutines of a backend, all of which have ended when Close returns.

// idleFor is how long a goroutine without a task is kept.
const idleFor = time.Second

// start runs a task in a goroutine, unless the backend is closed. One that has
// just ended a task takes it, if there is one: its stack has grown already, and
// growing it takes longer than all that a committer does for a swap.
func (b *Backend) start(task func()) bool {
	select {
	case b.idle <- task:
		return true
	default:
	}
	b.tasksMu.Lock()
	defer b.tasksMu.Unlock()
	if b.ctx.Err() != nil {
		return false
	}
	b.tasks.Go(func() {
		task()
		b.takeTasks()
	})
	return true
}

// takeTasks runs tasks in an idle goroutine, until there is none for a while.
func (b *Backend) takeTasks() {
	timer := time.NewTimer(idleFor)
	defer timer.Stop()
	for {
		select {
		case task := <-b.idle:
			task()
			timer.Reset(idleFor)
		case <-timer.C:
			return
		case <-b.ctx.Done():
			return
		}
	}
}
