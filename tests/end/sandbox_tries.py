"""What a server may try that an attacker drives: each try sets `reached` to something true if it gets anywhere.

`C` has what the attacker knows: the gateway's files, its process, its sockets, another user's folder.
"""

from __future__ import annotations

from typing import Final

_READ: Final = "reached = open(C[{!r}], 'rb').read(1)"
_CALL: Final = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
"""

TRIES: Final[dict[str, str]] = {
    # --- what it starts with: later tries change that ---
    "the rights of root": """
reached = [line for line in open('/proc/self/status') if line.startswith('CapEff') and int(line.split()[1], 16)]
""",
    "more descriptors than standard ones": """
import os, stat
reached = []
for fd in range(3, 256):
    try:
        if not stat.S_ISCHR(os.fstat(fd).st_mode): reached.append(fd)
    except OSError:
        pass
""",
    # --- the gateway's files ---
    **{f"read the {what}": _READ.format(what) for what in ("config", "audit", "tokens", "seal", "credential", "hook")},
    "append to the configuration": "reached = open(C['config'], 'a').write('x = 1')",
    "cut the audit": "import os; os.truncate(C['audit'], 0); reached = True",
    "remove the audit": "import os; os.unlink(C['audit']); reached = True",
    "rename the configuration": "import os; os.rename(C['config'], C['config'] + '2'); reached = True",
    "replace the hook": "import os; open('h', 'w').write('#!/bin/sh'); os.rename('h', C['hook']); reached = True",
    "link the tokens into its folder": "import os; os.link(C['tokens'], 'tokens'); reached = True",
    "a link to the tokens": "import os; os.symlink(C['tokens'], 'l1'); reached = open('l1').read()",
    "a link to the folder": "import os; os.symlink(C['folder'], 'l2'); reached = 'gateway.toml' in os.listdir('l2/')",
    "a link by way of the root": "import os; os.symlink('/', 'l3'); reached = open('l3' + C['tokens']).read()",
    "list the state": "import os; reached = 'audit.jsonl' in os.listdir(C['state'])",
    "list the folder of the configuration": """
import os
reached = 'gateway.toml' in os.listdir(C['folder'])
""",
    "make a file beside the configuration": "reached = open(C['folder'] + '/new', 'w').write('x')",
    "make a folder beside the configuration": "import os; os.mkdir(C['folder'] + '/d'); reached = True",
    "let everybody read the tokens": """
import os
os.chmod(C['tokens'], 0o644); reached = os.stat(C['tokens']).st_mode & 4
""",
    "give the tokens away": """
import os
os.chown(C['tokens'], 65534, 65534); reached = os.stat(C['tokens']).st_uid == 65534
""",
    "an old time for the configuration": """
import os
os.utime(C['config'], (0, 0)); reached = os.stat(C['config']).st_mtime == 0
""",
    "an attribute of the configuration": """
import os
os.setxattr(C['config'], 'user.x', b'1'); reached = os.getxattr(C['config'], 'user.x')
""",
    # --- the same with what it may read, by a descriptor ---
    "a mode by a descriptor": """
import os
fd = os.open(C['program'], os.O_RDONLY)
os.fchmod(fd, 0o666); reached = os.fstat(fd).st_mode & 2
""",
    "an owner by a descriptor": """
import os
fd = os.open(C['program'], os.O_RDONLY)
os.fchown(fd, 65534, 65534); reached = os.fstat(fd).st_uid == 65534
""",
    "a time by a descriptor": """
import os
fd = os.open(C['program'], os.O_RDONLY)
os.utime(fd, (0, 0)); reached = os.fstat(fd).st_mtime == 0
""",
    "an attribute by a descriptor": """
import os
fd = os.open(C['program'], os.O_RDONLY)
os.setxattr(fd, 'user.x', b'1'); reached = os.getxattr(fd, 'user.x')
""",
    "no attribute by a descriptor": """
import os
fd = os.open(C['program'], os.O_RDONLY)
os.removexattr(fd, 'user.kept'); reached = 'user.kept' not in os.listxattr(fd)
""",
    "flags by a descriptor": """
import fcntl, os, struct
fd = os.open(C['program'], os.O_RDONLY)
flags = struct.unpack('l', fcntl.ioctl(fd, 0x80086601, b'\\0' * 8))[0]
fcntl.ioctl(fd, 0x40086602, struct.pack('l', flags | 0x80)); reached = True
""",
    "a mode by way of a folder": """
import os
folder = os.open(os.path.dirname(C['program']), os.O_PATH)
os.chmod('tokens', 0o666, dir_fd=folder); reached = os.stat('tokens', dir_fd=folder).st_mode & 2
""",
    "change the root, and come back": """
import os
root = os.open('/', os.O_RDONLY | os.O_DIRECTORY)
os.mkdir('jail'); os.chroot('jail'); os.fchdir(root)
for _ in range(20): os.chdir('..')
os.chroot('.'); reached = open(C['tokens']).read()
""",
    "go up from an inherited descriptor": """
import os
for name in os.listdir('/proc/self/fd') if os.path.isdir('/proc/self/fd') else map(str, range(3, 256)):
    try:
        reached = os.open('..' * 1 + '/..' * 20 + C['tokens'], os.O_RDONLY, dir_fd=int(name))
    except OSError:
        pass
""",
    "io_uring": _CALL + "reached = libc.syscall(425, 8, ctypes.create_string_buffer(120)) >= 0",
    # --- other users, and other servers ---
    "read another user's folder": "reached = open(C['other'] + '/private').read()",
    "write another user's folder": "reached = open(C['other'] + '/planted', 'w').write('x')",
    "list the folders of others": """
import os
reached = [x for x in os.listdir(os.path.dirname(C['other'])) if x not in os.getcwd()]
""",
    "another user's folder by ..": """
import os
reached = open('../' + os.path.basename(C['other']) + '/private').read()
""",
    "put a link in the place of its own folder": """
import os
own = os.getcwd(); os.rename(own, own + '2'); os.symlink(C['state'], own); reached = True
""",
    "a git hook of its own that others run": "reached = open('/etc/gitconfig', 'a').write('[core]')",
    "a profile that others read": "import os; reached = open(C['home'] + '/.profile', 'a').write('x')",
    # --- the gateway's processes ---
    "its environment": "reached = open(f\"/proc/{C['pid']}/environ\", 'rb').read(1)",
    "its memory": "reached = open(f\"/proc/{C['pid']}/mem\", 'rb')",
    "its map of memory": "reached = open(f\"/proc/{C['pid']}/maps\").read(1)",
    "its working folder": "import os; reached = os.listdir(f\"/proc/{C['pid']}/cwd/\")",
    "the root of its files": "reached = open(f\"/proc/{C['pid']}/root\" + C['tokens']).read()",
    "its descriptors": "import os; reached = os.listdir(f\"/proc/{C['pid']}/fd\")",
    "its command line": "reached = 'hookproxy' in open(f\"/proc/{C['pid']}/cmdline\").read()",
    "its likelihood to be ended": "reached = open(f\"/proc/{C['pid']}/oom_score_adj\", 'w').write('1000')",
    "a signal": "import os; os.kill(C['pid'], 0); reached = True",
    "a signal to its group": "import os; os.killpg(C['pid'], 0); reached = True",
    "a signal when a socket is ready": """
import fcntl, os, socket
a, b = socket.socketpair()
fcntl.fcntl(a, fcntl.F_SETOWN, C['pid']); fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC); b.send(b'x')
""",
    "enter its namespaces": _CALL
    + """
import os
fd = os.pidfd_open(C['pid']); reached = libc.setns(fd, 0x02000000) == 0
""",
    "compare its descriptors": _CALL
    + """
number = {'x86_64': 312, 'aarch64': 272}[__import__('os').uname().machine]
reached = libc.syscall(number, __import__('os').getpid(), C['pid'], 1, 0, 0) >= 0
""",
    "move its memory": _CALL
    + """
number = {'x86_64': 279, 'aarch64': 239}[__import__('os').uname().machine]
reached = libc.syscall(number, C['pid'], 0, 0, 0, 0, 0) >= 0
""",
    "a signal by a descriptor": """
import os, signal
fd = os.pidfd_open(C['pid']); signal.pidfd_send_signal(fd, 0); reached = True
""",
    "take a descriptor of it": _CALL
    + """
import os
fd = os.pidfd_open(C['pid']); reached = libc.syscall(438, fd, 0, 0) >= 0
""",
    "trace it": _CALL + "reached = libc.ptrace(16, C['pid'], 0, 0) == 0",
    "read its memory by a call": _CALL
    + """
piece = (ctypes.c_size_t * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
there = (ctypes.c_size_t * 2)(C['address'], 8)
reached = libc.process_vm_readv(C['pid'], piece, 1, there, 1, 0) == 8
""",
    "its limits": _CALL
    + """
import resource
resource.prlimit(C['pid'], resource.RLIMIT_NOFILE, (8, 8)); reached = True
""",
    "its limit of files by its soft value": """
import resource
reached = resource.prlimit(C['pid'], resource.RLIMIT_CORE)
""",
    "its priority": "import os; os.setpriority(os.PRIO_PROCESS, C['pid'], 19); reached = True",
    "its processors": "import os; os.sched_setaffinity(C['pid'], {0}); reached = True",
    "the priority of all of its account": """
import os
before = os.getpriority(os.PRIO_PROCESS, C['pid']) if os.path.exists(f"/proc/{C['pid']}/stat") else 0
os.setpriority(os.PRIO_USER, 0, 19); reached = os.getpriority(os.PRIO_PROCESS, C['pid']) == 19
""",
    "what all of its account wait for disks": _CALL
    + """
number = {'x86_64': 251, 'aarch64': 30}[__import__('os').uname().machine]
reached = libc.syscall(number, 3, 0, 3 << 13) == 0 and libc.syscall(number + 1, 1, C['pid']) == 3 << 13
""",
    "its scheduling": "import os; os.sched_setscheduler(C['pid'], os.SCHED_BATCH, os.sched_param(0)); reached = True",
    # --- its sockets ---
    "its socket": "import socket; s = socket.socket(1); s.connect(C['socket']); reached = True",
    "its socket by a link": """
import os, socket
os.symlink(C['socket'], 's'); s = socket.socket(1); s.connect('s'); reached = True
""",
    "the socket of its console": """
import os, socket
[name] = os.listdir(C['runs']); s = socket.socket(1); s.connect(C['runs'] + '/' + name); reached = True
""",
    "an abstract socket of this machine": """
import socket
s = socket.socket(1); s.connect(C['abstract']); reached = True
""",
    "a datagram to a socket": """
import socket
a, b = socket.socketpair(1, 2); a.sendto(b'x', C['datagrams']); reached = True
""",
    "a packet to a socket": """
import socket
a, b = socket.socketpair(1, 5); b.close()
try: a.connect(C['socket'])
except OSError: pass
a.sendto(b'x', C['datagrams']); reached = True
""",
    "a pair that is connected again": """
import socket
a, b = socket.socketpair(1, 1); b.close(); a.shutdown(2); a.connect(C['socket']); reached = True
""",
    # --- shared memory, queues, keys ---
    "shared memory of its account": _CALL
    + "reached = libc.shmat(C['shm'], 0, 0) != -1 and libc.shmget(C['shm_key'], 1, 0) != -1",
    "shared memory by a name": "reached = open('/dev/shm/' + C['shm_name'], 'rb').read(1)",
    "a queue of messages": _CALL + "reached = libc.msgget(C['queue_key'], 0) != -1",
    "a message of a queue whose number is guessed": _CALL
    + """
text = ctypes.create_string_buffer(64)
reached = [n for n in range(64) if libc.msgrcv(C['queue'], text, 8, 0, 0o4000) > 0]
""",
    "a semaphore whose number is guessed": _CALL
    + """
import struct
reached = libc.semop(C['semaphore'], struct.pack('HhH', 0, 1, 0), 1) == 0
""",
    "the host of a virtual machine": "import socket; reached = socket.socket(40, socket.SOCK_STREAM)",
    "a socket of the kernel's ciphers": "import socket; reached = socket.socket(38, socket.SOCK_SEQPACKET)",
    "the bus of the system": """
import socket
s = socket.socket(1); s.connect('/run/dbus/system_bus_socket'); reached = True
""",
    "a memory of its own under another's name": """
reached = open(f"/proc/{C['pid']}/task/{C['pid']}/comm", 'w').write('x')
""",
    "more rights of a file": """
import os
os.chmod(C['program'], 0o4755); reached = os.stat(C['program']).st_mode & 0o4000
""",
    "a key of its account": _CALL
    + "reached = libc.syscall({'x86_64': 250, 'aarch64': 219}[__import__('os').uname().machine], 0, -3, 0) > 0",
    # --- the system ---
    "mount the root again": _CALL + "reached = libc.mount(b'/', b'/mnt', 0, 4096, 0) == 0",
    "take a cover away": _CALL
    + """
import os
os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS) if hasattr(os, 'unshare') else libc.unshare(0x10020000)
libc.umount2(C['folder'].encode(), 2); libc.umount2(b'/tmp', 2); libc.umount2(b'/', 2)
reached = open(C['tokens']).read()
""",
    "a namespace with all rights": _CALL
    + """
libc.unshare(0x10020000)
libc.mount(b'proc', b'/proc', b'proc', 0, 0); reached = open(f"/proc/{C['pid']}/root" + C['tokens']).read()
""",
    "more rights by a program that gives them": _CALL + "reached = libc.prctl(39, 0, 0, 0, 0) == 0",
    "the settings of the kernel": """
text = open('/proc/sys/kernel/core_pattern').read()
reached = open('/proc/sys/kernel/core_pattern', 'w').write(text)
""",
    "the disk": """
import os
os.mknod('disk', 0o60660, os.makedev(8, 0)); reached = True
""",
    "passwords": "reached = open('/etc/shadow').read()",
    "the terminal": "import fcntl, os; fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), 0x5412, b'x'); reached = True",
    "programs of the system": "reached = open('/usr/bin/planted', 'w').write('x')",
    "its own program": "import sys; reached = open(C['program'], 'a').write('#')",
    "a task for later": "reached = open('/etc/cron.d/planted', 'w').write('x')",
    "what the gateway's Python imports": "reached = open(C['site'] + '/planted.pth', 'w').write('x')",
    "the temporary files of all": "import os; reached = C['marker'] in os.listdir('/tmp')",
}
"""Each by what it is after."""

HARMLESS: Final = (
    *("read the config", "read the audit", "read the tokens", "read the seal", "read the credential", "read the hook"),
    *("a link to the tokens", "a link to the folder", "a link by way of the root", "list the state"),
    *("list the folder of the configuration", "let everybody read the tokens", "read another user's folder"),
    *(
        "write another user's folder",
        "list the folders of others",
        "its environment",
        "its memory",
        "its map of memory",
    ),
    *("its working folder", "the root of its files", "its descriptors", "its command line", "a signal"),
    *("a signal by a descriptor", "read its memory by a call", "its limit of files by its soft value", "its socket"),
    *("an abstract socket of this machine", "a datagram to a socket", "the temporary files of all"),
    *("more rights by a program that gives them",),
)
"""What works without a sandbox and changes nothing that stays: so the tries are known to be good ones."""

COMMANDS: Final = {
    "a command that git runs": """
git init -q repo; cd repo; git config core.fsmonitor "cat {tokens} {config} >../out 2>/dev/null; false"; git status -s
cat ../out; rm -f ../out
""",
    "a hook that git runs": """
git init -q repo2; cd repo2; printf '#!/bin/sh\ncat {seal} {credential}\n' >.git/hooks/pre-commit
chmod +x .git/hooks/pre-commit; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x 2>&1
""",
    "a shell in the background": "(sleep 0.05; cat {tokens}) & wait",
    "a make file": "printf 'x:\n\tcat {seal}\n' >Makefile; make -s 2>&1",
    "find": "find / -name tokens -exec cat {{}} + 2>/dev/null",
    "tar": "tar cf - {folder} {state} 2>/dev/null",
    "a copy": "cp -r {folder} copy 2>/dev/null; cat copy/*",
    "ps": "ps axe | grep -a E2E_MARK",
}
"""Command lines that print what no server may see."""
