# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lab_acl.sh: runs in the guest. check_acls EXPORT MOUNT ENTRIES: ACLs of a mount of version 3, up to that
# many entries of users, by getfacl and setfacl, compared with what the export's own file system says.

# same_acl NAME: both sides say the same of it.
same_acl() {
    local here there
    here=$(getfacl -cEnp "$here_root/$1") there=$(getfacl -cEnp "$there_root/$1")
    [[ $here == "$there" ]] && return
    printf 'the server has of %s\n%s\nand the client\n%s\n' "$1" "$here" "$there"
    return 1
}
# has_acl NAME ENTRY: the export has that entry, and the client sees the same ACL.
has_acl() {
    getfacl -cEnp "$here_root/$1" | grep -qx "$2" || {
        printf '%s lacks %s:\n' "$1" "$2"
        getfacl -cEnp "$here_root/$1"
        return 1
    }
    same_acl "$1"
}

check_acls() {
    local here_root=$1/acl there_root=$2/acl most=$3 id arguments=()
    mkdir -m 755 "$there_root"
    cd "$there_root" || return

    install -m 640 /dev/null file
    same_acl file
    setfacl -m u:1234:rwx,g:55:r file
    has_acl file user:1234:rwx
    [[ $(stat -c %a "$here_root/file") == 670 ]]
    # A mask that is less than what it masks, and one that is the owning group's rights.
    setfacl -m m::r file
    has_acl file mask::r--
    [[ $(stat -c %a file) == 640 ]]
    setfacl -b file
    same_acl file
    [[ $(getfacl -cEnp "$here_root/file" | grep -c .) == 3 ]]

    mkdir directory
    setfacl -d -m u::rwx,g::rx,o::-,g:77:rwx directory
    has_acl directory default:group:77:rwx
    mkdir directory/sub
    touch directory/sub/file
    has_acl directory/sub default:group:77:rwx
    has_acl directory/sub/file group:77:rwx
    setfacl -k directory
    same_acl directory
    [[ -z $(getfacl -dcEnp "$here_root/directory") ]]

    for id in $(seq 2001 $((2000 + most))); do arguments+=("u:$id:r"); done
    setfacl -m "$(IFS=,; echo "${arguments[*]}")" file
    has_acl file "user:$((2000 + most)):r--"
    [[ $(getfacl -cEnp file | grep -c ^user:2) == "$most" ]]

    # What is set at the server is seen, once the client looks again.
    setfacl -b -m u:4321:x "$here_root/file"
    touch "$here_root/file"
    sleep 4
    has_acl file user:4321:--x

    # Rights: by the ACL, and to the ACL.
    install -m 600 /dev/null private
    echo secret >private
    setfacl -m u:1234:r private
    [[ $(setpriv --reuid=1234 --regid=1234 --clear-groups cat private) == secret ]]
    if setpriv --reuid=1234 --regid=1234 --clear-groups setfacl -m u:1234:rw private 2>refused; then
        echo "somebody set the ACL of a file that is not his"
        return 1
    fi
    grep -q "Operation not permitted" refused
    has_acl private user:1234:r--
    cd /host || return
    rm -r "$there_root"
}
