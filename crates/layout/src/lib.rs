//! Pure maps between array addresses and strips on drives, for every level.
