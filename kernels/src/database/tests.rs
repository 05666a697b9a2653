//! Tests of the text of the database.

use super::*;

fn facts(model: &str, architecture: &str, vendor: &str) -> DeviceFacts {
    let mut facts = DeviceFacts::new("test:0");
    facts.identity.kind = DeviceKind::Gpu;
    facts.identity.model = model.to_owned();
    facts.identity.architecture = architecture.to_owned();
    facts.identity.vendor = vendor.to_owned();
    facts
}

/// Returns the kernels of the entries for a device, in the order of precedence.
fn kernels(database: &Database, facts: &DeviceFacts, dialect: Dialect) -> Vec<String> {
    database.entries(facts, dialect).map(|entry| entry.kernel.to_string()).collect()
}

#[test]
fn every_line_of_the_shipped_texts_is_an_entry() {
    for (name, text) in TEXTS {
        assert_eq!(Database::default().add(name, text), Vec::<String>::new());
    }
    assert!(Database::shipped().entries.len() > 40);
}

#[test]
fn entries_for_few_devices_come_before_entries_for_many() {
    let mut database = Database::default();
    let text = "solve items=1\n[any]\nsolve items=2 # as many as it has\n[kind gpu]\nsolve items=3\n[vendor Acme, Inc., gpu]\n\
                solve items=4\n[architecture a9]\nsolve wgsl items=5\n[device Acme X [1]]\nsolve items=6\n[kind cpu]\nsolve items=7";
    assert_eq!(database.add("test", text), Vec::<String>::new());
    let items = |facts: &DeviceFacts, dialect| -> Vec<usize> {
        let of = |kernel: String| kernel.strip_prefix("solve items=").unwrap().parse().unwrap();
        kernels(&database, facts, dialect).into_iter().map(of).collect()
    };
    let acme = facts("Acme X [1]", "a9", "Acme, Inc.");
    assert_eq!(items(&acme, Dialect::Wgsl), [6, 5, 4, 3, 1, 2]);
    assert_eq!(items(&acme, Dialect::OpenClC), [6, 4, 3, 1, 2]);
    assert_eq!(items(&facts("", "", ""), Dialect::OpenClC), [3, 1, 2]);
    // a user's entries precede those of the same devices
    let mut mine = Database::default();
    assert_eq!(mine.add("mine", "[device Acme X [1]]\nsolve items=8\n[any]\nsolve items=9"), Vec::<String>::new());
    let all = mine.then(&database);
    assert_eq!(kernels(&all, &acme, Dialect::OpenClC)[..2], ["solve items=8", "solve items=6"]);
    assert_eq!(all.entries(&acme, Dialect::OpenClC).last().unwrap().origin, "test:3: as many as it has");
}

#[test]
fn a_damaged_line_is_named_and_skipped() {
    for (line, reason) in [
        ("gemm_tiles mwg=1", "no kernel is called `gemm_tiles`"),
        ("gemm_panel mv=1 vw=2 nr=3", "group is not given"),
        ("gemm_panel mv=1 vw=2 nr=3 group=1 kc=1 nc=1", "mc is not given"),
        ("gemm_panel mv=1 vw=2 nr=3 group=1 kc=1 mc=1 nc=1 mr=1", "gemm_panel has no parameter `mr`"),
        ("gemm_panel mv=1 mv=1 vw=2 nr=3 group=1 kc=1 mc=1 nc=1", "`mv=1` is given twice"),
        ("gemm_panel mv=1 mv=2 vw=2 nr=3 group=1 kc=1 mc=1 nc=1", "`mv=2` follows `mv=1`: keep one of the two"),
        ("solve items=4 f32 f64", "`f64` follows `f32`"),
        ("solve f32 f32 items=4", "`f32` is given twice"),
        ("stop strips wgsl opencl", "`opencl` follows `wgsl`"),
        ("panel rows>=3 rows>=5 items=4", "`rows>=5` follows `rows>=3`"),
        ("gemm_tile tall wide mwg=32 nwg=32 kwg=8 mr=4 nr=4 vwm=1 stages=2", "`wide` follows `tall`"),
        ("gemm_tile groups>=units groups>=2 mwg=32 nwg=32 kwg=8 mr=4 nr=4 vwm=1 stages=2", "`groups>=2` follows `groups>=units`"),
        (
            "gemm_tile groups>=3 groups<=2 mwg=32 nwg=32 kwg=8 mr=4 nr=4 vwm=1 stages=2",
            "`groups>=3` and `groups<=2` hold for no product",
        ),
        (
            "gemm_tile terms<=2 terms>=3 mwg=32 nwg=32 kwg=8 mr=4 nr=4 vwm=1 stages=2",
            "`terms>=3` and `terms<=2` hold for no product",
        ),
        ("gemm_mma peak=1 peak=2 half=3 alone=4", "`peak=2` follows `peak=1`"),
        ("lu_block columns=8 columns=16", "`columns=16` follows `columns=8`"),
        ("gemm_panel mv=1 vw=x nr=3 group=1", "`vw=x` holds no whole number"),
        ("gemm_panel mv=1 vw=-2 nr=3 group=1", "`vw=-2` holds no whole number"),
        ("solve items=4 lines>=3", "`lines>=3` is no condition"),
        ("solve items=4 side>=3", "`side>=3` is no condition"),
        ("exchange items=4 tall", "`tall` means nothing to exchange, which knows language, rows"),
        ("columns items=8 terms>=3", "`terms>=3` means nothing to columns"),
        ("solve rows>=3 items=4", "`rows>=3` means nothing to solve, which knows language"),
        ("elements groups<=3 items=4", "`groups<=3` means nothing to elements"),
        ("gemm_tile rows>=3 mwg=32 nwg=32 kwg=8 mr=4 nr=4 vwm=1 stages=2", "`rows>=3` means nothing to gemm_tile, which knows"),
        ("cpu_blocks opencl kc=1 mc=1 nc=1 team_mc=1 team_nc=1", "`opencl` means nothing to cpu_blocks, which has no conditions"),
        ("solve items=4 terms<=few", "`terms<=few` holds no whole number"),
        ("solve items=4 groups>=many", "`groups>=many` holds no whole number"),
        ("solve items=4 f16", "`f16` is no parameter"),
        ("stop solver", "no kernel is called `solver`"),
        ("stop", "no kernel is called `stop`"),
        ("stop strips rows>=4", "`rows>=4` means nothing to `stop`"),
        ("stop gemm mwg=3", "`stop` has no parameters"),
        ("solve items=99999999", "`items=99999999` is larger"),
        ("gemm_vector mwg=64 nwg=64 kwg=16 mr=4 nr=8 lanes_n=4 zigzag=2 ahead=0", "zigzag is 0 or 1, not 2"),
        ("\u{0}\u{1}", "no kernel is called"),
    ] {
        let mut database = Database::default();
        let problems = database.add("my.txt", &format!("solve items=1\n{line}\nsolve items=2"));
        assert!(problems.len() == 1 && problems[0].contains(reason) && problems[0].starts_with("my.txt:2:"), "{problems:?}");
        assert_eq!(kernels(&database, &facts("", "", ""), Dialect::Wgsl), ["solve items=1", "solve items=2"]);
    }
    // entries below a damaged scope would apply to other devices
    for scope in ["[device X", "[devices X]", "[vendor X]", "[vendor X, phone]", "[kind phone]", "[]"] {
        let mut database = Database::default();
        let problems = database.add("my.txt", &format!("{scope}\nsolve items=1\nsolve items=2\n[any]\nsolve items=3"));
        assert!(problems.len() == 1 && problems[0].contains("names no devices"), "{problems:?}");
        assert_eq!(kernels(&database, &facts("", "", ""), Dialect::Wgsl), ["solve items=3"], "{scope}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    let text = "\u{feff}[kind cpu]\r\nsolve items=1\r\n[any]\r\nsolve items=2\r\n";
    let mut database = Database::default();
    assert_eq!(database.add("my.txt", text), Vec::<String>::new());
    assert_eq!(kernels(&database, &facts("", "", ""), Dialect::Wgsl), ["solve items=2"]);
}

#[test]
fn an_entry_reads_as_it_was_written() {
    let mut database = Database::shipped().clone();
    let scopes = "[device X, Y]\nsolve items=1\n[architecture sm_90]\nsolve items=1\n[vendor A, B, cpu]\nsolve f32 wgsl items=1\n\
                  panel rows>=4 items=1\n\
                  gemm_tile groups>=3 groups<=9 side<=5 tall terms>=6 terms<=7 mwg=4 nwg=4 kwg=4 mr=4 nr=4 vwm=1 stages=2\n\
                  gemm_tile wide mwg=4 nwg=4 kwg=4 mr=4 nr=4 vwm=1 stages=2";
    assert_eq!(database.add("scopes", scopes), Vec::<String>::new());
    for entry in &database.entries {
        let text = format!("{}\n{entry}  # {}", entry.scope, "note");
        let mut again = Database::default();
        assert_eq!(again.add("again", &text), Vec::<String>::new());
        assert_eq!(again.entries, [Entry { origin: "again:2: note".to_owned(), ..entry.clone() }]);
    }
}

#[test]
fn the_speed_of_a_kernel_is_read_and_written() {
    let mma = "mwg=64 nwg=64 kwg=16 mw=32 nw=32 stages=4 raster=8 split=1 unit=8 guarded=1 aligned=0 ptx=1";
    let line = format!("gemm_mma f64 peak=58700 half=65 alone=76 {mma}");
    let mut database = Database::default();
    assert_eq!(database.add("text", &line), Vec::<String>::new());
    assert_eq!(database.entries[0].speed, Some(Speed { peak: 58_700, half: 65, alone: 76 }));
    assert_eq!(database.entries[0].to_string(), line);
    for damaged in ["peak=1 half=1", "peak=0 half=1 alone=1", "peak=1 half=1 alone=0", "peak=1 half=1 alone=101"] {
        let problems = database.add("text", &format!("gemm_mma {damaged} {mma}"));
        assert!(problems.len() == 1 && problems[0].contains("a speed has"), "{problems:?}");
    }
    assert!(database.add("text", "solve peak=1 half=1 alone=1 items=32")[0].contains("only kernels for products"));
}
